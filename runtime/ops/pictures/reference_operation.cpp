#include "runtime/ops/pictures/reference_operation.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace vitrine::reference {
namespace {

using Kind = PictureOperationKind;
using Rgb = std::array<int, 3>;

Rgb rgb_of(uint32_t pixel) {
  return {static_cast<int>(pixel & 255), static_cast<int>(pixel >> 8 & 255),
          static_cast<int>(pixel >> 16 & 255)};
}
uint32_t pixel_of(const Rgb& c) {
  return static_cast<uint32_t>(c[0]) | static_cast<uint32_t>(c[1]) << 8 | static_cast<uint32_t>(c[2]) << 16 |
         0xff000000;
}

int grey_of(const Rgb& c) { return (c[0] * 19595 + c[1] * 38470 + c[2] * 7471 + 32768) >> 16; }

int blended(int a, int b, double factor) {
  const float alpha = static_cast<float>(factor);
  const float value = static_cast<float>(a) + alpha * static_cast<float>(b - a);
  if (value <= 0) return 0;
  if (value >= 255) return 255;
  return static_cast<int>(value);
}

std::array<uint64_t, 256> histogram_of(std::span<const uint32_t> pixels, size_t channel) {
  std::array<uint64_t, 256> counts{};
  for (const uint32_t pixel : pixels) ++counts[static_cast<size_t>(rgb_of(pixel)[channel])];
  return counts;
}

// What a channel's bytes become by what there is of them; as they are where that says nothing.
std::array<int, 256> by_histogram(Kind kind, const std::array<uint64_t, 256>& counts) {
  std::array<int, 256> table{};
  for (size_t i = 0; i < 256; ++i) table[i] = static_cast<int>(i);
  const auto present = [](uint64_t count) { return count != 0; };
  const auto lowest = std::ranges::find_if(counts, present) - counts.begin();
  const auto highest = 255 - (std::find_if(counts.rbegin(), counts.rend(), present) - counts.rbegin());
  if (highest <= lowest) return table;
  if (kind == Kind::autocontrast) {
    const double scale = 255.0 / static_cast<double>(highest - lowest);
    const double offset = -static_cast<double>(lowest) * scale;
    for (size_t i = 0; i < 256; ++i) {
      const double product = static_cast<double>(i) * scale;
      table[i] = std::clamp(static_cast<int>(product + offset), 0, 255);
    }
    return table;
  }
  uint64_t total = 0;
  for (const uint64_t count : counts) total += count;
  const uint64_t step = (total - counts[static_cast<size_t>(highest)]) / 255;
  if (step == 0) return table;
  uint64_t sum = step / 2;
  for (size_t i = 0; i < 256; ++i) {
    table[i] = static_cast<int>(std::min<uint64_t>(sum / step, 255));
    sum += counts[i];
  }
  return table;
}

int mean_of_greys(std::span<const uint32_t> pixels) {
  double sum = 0;
  for (const uint32_t pixel : pixels) sum += grey_of(rgb_of(pixel));
  return static_cast<int>(sum / static_cast<double>(pixels.size()) + 0.5);
}

Rgb with_hue(const Rgb& c, uint32_t turn) {
  const int most = std::max({c[0], c[1], c[2]}), least = std::min({c[0], c[1], c[2]});
  if (most == least) return c;
  const auto spread = static_cast<float>(most - least);
  const float saturation = spread / static_cast<float>(most);
  const auto away = [&](size_t channel) { return static_cast<float>(most - c[channel]) / spread; };
  const float r = away(0), g = away(1), b = away(2);
  float hue = b - g;
  if (c[0] != most) hue = static_cast<float>(c[1] == most ? 2.0 + r - b : 4.0 + g - r);
  hue = static_cast<float>(std::fmod(hue / 6.0 + 1.0, 1.0));
  const int h = (static_cast<int>(hue * 255.0) + static_cast<int>(turn)) & 255;
  const int s = static_cast<int>(saturation * 255.0);
  if (s == 0) return {most, most, most};
  const double place = static_cast<float>(h) * 6.0 / 255.0;
  const int sector = static_cast<int>(std::floor(place));
  const auto f = static_cast<float>(place - static_cast<double>(static_cast<float>(sector)));
  const auto fs = static_cast<float>(static_cast<double>(s) / 255.0);
  const auto less = [&](double part) {
    return std::clamp(static_cast<int>(std::round(static_cast<double>(most) * (1.0 - part))), 0, 255);
  };
  const double product = static_cast<double>(fs) * static_cast<double>(f),
               other = static_cast<double>(fs) * (1.0 - static_cast<double>(f));
  const int p = less(fs), q = less(product), t = less(other);
  const Rgb results[] = {{most, t, p}, {q, most, p}, {p, most, t}, {p, q, most}, {t, p, most}, {most, p, q}};
  return results[sector % 6];
}

class Source {
 public:
  Source(std::span<const uint32_t> pixels, uint32_t width, uint32_t height)
      : pixels_(pixels), width_(static_cast<int>(width)), height_(static_cast<int>(height)) {}

  Rgb at(int x, int y) const {
    return rgb_of(pixels_[static_cast<size_t>(std::clamp(y, 0, height_ - 1)) * static_cast<size_t>(width_) +
                          static_cast<size_t>(std::clamp(x, 0, width_ - 1))]);
  }
  bool inside(double x, double y) const { return x >= 0 && x < width_ && y >= 0 && y < height_; }
  bool border(int x, int y) const { return x == 0 || y == 0 || x == width_ - 1 || y == height_ - 1; }

 private:
  std::span<const uint32_t> pixels_;
  int width_, height_;
};

Rgb smoothed(const Source& source, int x, int y) {
  const Rgb own = source.at(x, y);
  if (source.border(x, y)) return own;
  Rgb result{};
  for (size_t c = 0; c < 3; ++c) {
    double sum = 4.0 / 13 * own[c];
    for (int i = -1; i <= 1; ++i) {
      for (int k = -1; k <= 1; ++k) sum += 1.0 / 13 * source.at(x + k, y + i)[c];
    }
    result[c] = static_cast<int>(sum + 0.5);
  }
  return result;
}

double cubic(double a, double b, double c, double e, double d) {
  const double p2 = -a + c, p3 = 2 * (a - b) + c - e, p4 = -a + b - c + e;
  return b + d * (p2 + d * (p3 + d * p4));
}

Rgb interpolated(const Source& source, Kind kind, double x, double y) {
  x -= 0.5;
  y -= 0.5;
  const int left = static_cast<int>(std::floor(x)), top = static_cast<int>(std::floor(y));
  const double dx = x - left, dy = y - top;
  Rgb result{};
  for (size_t c = 0; c < 3; ++c) {
    const auto row = [&](int i) -> double {
      const auto tap = [&](int k) -> double { return source.at(left + k, top + i)[c]; };
      if (kind == Kind::bilinear) return tap(0) + (tap(1) - tap(0)) * dx;
      return cubic(tap(-1), tap(0), tap(1), tap(2), dx);
    };
    const double value =
        kind == Kind::bilinear ? row(0) + (row(1) - row(0)) * dy : cubic(row(-1), row(0), row(1), row(2), dy);
    result[c] = value <= 0 ? 0 : value >= 255 ? 255 : static_cast<int>(value);
  }
  return result;
}

uint32_t moved(const Source& source, const PictureOperation& operation, int x, int y) {
  const AffineMatrix& m = operation.matrix;
  if (operation.kind == Kind::nearest) {
    const auto fixed = [](double value) { return static_cast<int64_t>(std::floor(value * 65536.0 + 0.5)); };
    const int64_t from_x = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5) + fixed(m[0]) * x + fixed(m[1]) * y,
                  from_y = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5) + fixed(m[3]) * x + fixed(m[4]) * y;
    const auto column = static_cast<int>(from_x >> 16), row = static_cast<int>(from_y >> 16);
    return source.inside(column, row) ? pixel_of(source.at(column, row)) : operation.fill;
  }
  const double middle_x = x + 0.5, middle_y = y + 0.5;
  const double from_x = m[0] * middle_x + m[1] * middle_y + m[2],
               from_y = m[3] * middle_x + m[4] * middle_y + m[5];
  if (!source.inside(from_x, from_y)) return operation.fill;
  return pixel_of(interpolated(source, operation.kind, from_x, from_y));
}

}  // namespace

std::vector<uint32_t> operation_table(const PictureOperation& operation, std::span<const uint32_t> pixels) {
  std::vector<uint32_t> table;
  const auto number = static_cast<int>(operation.number);
  const auto of_bytes = [&](const auto& becomes) {
    for (int i = 0; i < 256; ++i) table.push_back(pixel_of({becomes(i), becomes(i), becomes(i)}));
  };
  switch (operation.kind) {
    case Kind::brightness:
      of_bytes([&](int i) { return blended(0, i, operation.factor); });
      break;
    case Kind::contrast: {
      const int mean = mean_of_greys(pixels);
      of_bytes([&](int i) { return blended(mean, i, operation.factor); });
      break;
    }
    case Kind::posterize:
      of_bytes([&](int i) { return i >> (8 - number) << (8 - number); });
      break;
    case Kind::solarize:
      of_bytes([&](int i) { return i < number ? i : 255 - i; });
      break;
    case Kind::solarize_add:
      of_bytes([&](int i) { return i < 128 ? std::min(i + number, 255) : i; });
      break;
    case Kind::invert:
      of_bytes([](int i) { return 255 - i; });
      break;
    case Kind::autocontrast:
    case Kind::equalize: {
      std::array<std::array<int, 256>, 3> channels{};
      for (size_t c = 0; c < 3; ++c) channels[c] = by_histogram(operation.kind, histogram_of(pixels, c));
      for (size_t i = 0; i < 256; ++i)
        table.push_back(pixel_of({channels[0][i], channels[1][i], channels[2][i]}));
      break;
    }
    default:
      break;
  }
  return table;
}

std::vector<uint32_t> operation_result(const PictureOperation& operation, std::span<const uint32_t> pixels,
                                       uint32_t width, uint32_t height) {
  const std::vector<uint32_t> table = operation_table(operation, pixels);
  const Source source(pixels, width, height);
  std::vector<uint32_t> result;
  for (int y = 0; y < static_cast<int>(height); ++y) {
    for (int x = 0; x < static_cast<int>(width); ++x) {
      const uint32_t pixel = pixels[result.size()];
      const Rgb c = rgb_of(pixel);
      if (!table.empty()) {
        const auto entry = [&](size_t channel) {
          return rgb_of(table[static_cast<size_t>(c[channel])])[channel];
        };
        result.push_back(pixel_of({entry(0), entry(1), entry(2)}));
        continue;
      }
      switch (operation.kind) {
        case Kind::color:
        case Kind::sharpness: {
          const int grey = grey_of(c);
          const Rgb from = operation.kind == Kind::color ? Rgb{grey, grey, grey} : smoothed(source, x, y);
          Rgb to{};
          for (size_t i = 0; i < 3; ++i) to[i] = blended(from[i], c[i], operation.factor);
          result.push_back(pixel_of(to));
          break;
        }
        case Kind::hue:
          result.push_back(pixel_of(with_hue(c, operation.number)));
          break;
        case Kind::nearest:
        case Kind::bilinear:
        case Kind::bicubic:
          result.push_back(moved(source, operation, x, y));
          break;
        default:
          result.push_back(pixel);
      }
    }
  }
  return result;
}

}  // namespace vitrine::reference
