#include "runtime/check/reference_heat.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace vitrine::reference {
namespace {

constexpr uint64_t pixels_a_patch = 9;
constexpr double magenta = 0xffff00ffu;

// A smooth curve through `points` at 0, 1, 2, ..., constant outside: Hermite's cubics with slopes that are
// the harmonic mean of those on both sides, none at peaks and at the ends.
double curve(const std::vector<double>& points, double at) {
  const auto slope = [&](size_t i) {
    if (i == 0 || i + 1 == points.size()) return 0.0;
    const double before = points[i] - points[i - 1], after = points[i + 1] - points[i];
    return before * after <= 0 ? 0.0 : 2 / (1 / before + 1 / after);
  };
  at = std::clamp(at, 0.0, static_cast<double>(points.size() - 1));
  const size_t i = std::min(static_cast<size_t>(at), points.size() - 1);
  if (i + 1 == points.size()) return points[i];
  const double t = at - static_cast<double>(i);
  return (2 * t * t * t - 3 * t * t + 1) * points[i] + (3 * t * t - 2 * t * t * t) * points[i + 1] +
         (t * t * t - 2 * t * t + t) * slope(i) + (t * t * t - t * t) * slope(i + 1);
}

double color_at(const Values& colors, double warmth) {
  const double place = warmth * 255;
  const size_t below = std::min<size_t>(static_cast<size_t>(place), 254);
  uint32_t pixel = static_cast<uint32_t>(std::lround(255 * (0.55 + 0.45 * warmth))) << 24;
  for (uint32_t bit = 0; bit < 24; bit += 8) {
    const auto byte = [&](double color) {
      return static_cast<double>(static_cast<uint32_t>(color) >> bit & 255);
    };
    const double mixed =
        std::lerp(byte(colors[below]), byte(colors[below + 1]), place - static_cast<double>(below));
    pixel |= static_cast<uint32_t>(std::lround(mixed)) << bit;
  }
  return pixel;
}

// Eigenvalues on the diagonal of a symmetric matrix, eigenvectors as the columns of the result: Jacobi's
// rotations until nothing is left beside the diagonal.
Values diagonalize(Values& matrix, size_t n) {
  Values vectors(n * n);
  for (size_t i = 0; i < n; ++i) vectors[i * n + i] = 1;
  const auto rotate = [n](Values& m, size_t a, size_t b, size_t step, size_t start, double c, double s) {
    for (size_t i = 0; i < n; ++i) {
      double &x = m[start * i + a * step], &y = m[start * i + b * step];
      const double old = x;
      x = c * old - s * y;
      y = s * old + c * y;
    }
  };
  for (int sweep = 0; sweep < 30; ++sweep) {
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = a + 1; b < n; ++b) {
        const double off = matrix[a * n + b];
        if (off == 0) continue;
        const double angle = 0.5 * std::atan2(2 * off, matrix[b * n + b] - matrix[a * n + a]);
        const double c = std::cos(angle), s = std::sin(angle);
        rotate(matrix, a, b, 1, n, c, s);
        rotate(matrix, a, b, n, 1, c, s);
        rotate(vectors, a, b, 1, n, c, s);
      }
    }
  }
  return vectors;
}

}  // namespace

Values heat_pixels(const Values& numbers, uint64_t maps, uint64_t height, uint64_t width,
                   const Values& colors) {
  Values pixels;
  for (uint64_t map = 0; map < maps; ++map) {
    const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(map * height * width);
    Values warmth(begin, begin + static_cast<std::ptrdiff_t>(height * width));
    double low = INFINITY, high = -INFINITY;
    for (const double number : warmth) {
      if (!std::isfinite(number)) continue;
      low = std::min(low, number);
      high = std::max(high, number);
    }
    std::vector<bool> broken;
    for (double& number : warmth) {
      broken.push_back(!std::isfinite(number));
      number = !broken.back() && high > low ? (number - low) / (high - low) : 0;
    }
    const auto place = [](uint64_t pixel) {
      return (static_cast<double>(pixel) + 0.5) / pixels_a_patch - 0.5;
    };
    std::vector<Values> rows(height);  // at each pixel's column
    for (uint64_t row = 0; row < height; ++row) {
      const auto from = warmth.begin() + static_cast<std::ptrdiff_t>(row * width);
      const Values points(from, from + static_cast<std::ptrdiff_t>(width));
      for (uint64_t x = 0; x < width * pixels_a_patch; ++x) rows[row].push_back(curve(points, place(x)));
    }
    for (uint64_t y = 0; y < height * pixels_a_patch; ++y) {
      for (uint64_t x = 0; x < width * pixels_a_patch; ++x) {
        Values points;
        for (const Values& row : rows) points.push_back(row[x]);
        const bool hidden = broken[y / pixels_a_patch * width + x / pixels_a_patch];
        pixels.push_back(hidden ? magenta : color_at(colors, std::clamp(curve(points, place(y)), 0.0, 1.0)));
      }
    }
  }
  return pixels;
}

Values principal_colors(const Values& tokens, uint64_t width, uint64_t first, uint64_t count) {
  const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(first * width);
  Values x(begin, begin + static_cast<std::ptrdiff_t>(count * width));
  if (!std::ranges::all_of(x, [](double v) { return std::isfinite(v); })) return Values(count, magenta);
  double squares = 0, left = 0;
  for (uint64_t d = 0; d < width; ++d) {
    double mean = 0;
    for (uint64_t p = 0; p < count; ++p) mean += x[p * width + d] / static_cast<double>(count);
    for (uint64_t p = 0; p < count; ++p) {
      x[p * width + d] -= mean;
      left += x[p * width + d] * x[p * width + d];
    }
    squares += mean * mean * static_cast<double>(count);
  }
  Values pixels(count, double{0xff000000u});
  const bool of_width = width <= count;
  const uint64_t n = of_width ? width : count, depth = of_width ? count : width;
  Values matrix(n * n);
  for (uint64_t i = 0; i < n; ++i) {
    for (uint64_t j = 0; j < n; ++j) {
      for (uint64_t k = 0; k < depth; ++k)
        matrix[i * n + j] += of_width ? x[k * n + i] * x[k * n + j] : x[i * depth + k] * x[j * depth + k];
    }
  }
  const Values vectors = diagonalize(matrix, n);
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, std::greater{}, [&](size_t i) { return matrix[i * n + i]; });
  for (size_t component = 0; component < 3; ++component) {
    const size_t which = component < n ? order[component] : 0;
    const bool present = left > 1e-12 * squares && component < n &&
                         matrix[which * n + which] > 1e-6 * matrix[order[0] * n + order[0]];
    Values scores(count);
    for (uint64_t p = 0; p < count; ++p) {
      if (!of_width) scores[p] = vectors[p * n + which];
      for (uint64_t d = 0; of_width && d < width; ++d) scores[p] += x[p * width + d] * vectors[d * n + which];
    }
    const auto [low, high] = std::ranges::minmax(scores);
    for (uint64_t p = 0; p < count; ++p) {
      const double above = high >= -low ? scores[p] - low : high - scores[p];
      const double byte = present ? std::round(above / (high - low) * 255) : 128;
      pixels[p] += byte * std::pow(256.0, static_cast<double>(component));
    }
  }
  return pixels;
}

}  // namespace vitrine::reference
