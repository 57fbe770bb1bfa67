#include "train/digits/digit_renderer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "train/data/random_streams.h"

namespace vitrine {
namespace {

// All that is random about one picture. Only what IEEE 754 rounds alike everywhere is computed from it.
class Draws {
 public:
  Draws(const RandomStream& stream, uint64_t first_block, double distortion)
      : stream_(stream), next_block_(first_block), distortion_(distortion) {}

  uint32_t word() {
    if (used_ == words_.size()) {
      words_ = stream_.block(next_block_++);
      used_ = 0;
    }
    return words_[used_++];
  }
  uint32_t pick(size_t count) {
    const uint32_t high = word();
    return below(static_cast<uint32_t>(count), high, word());
  }
  double between(double low, double high) { return low + (high - low) * uniform_from(word()); }
  // As much of the way from `plain` to that as the set is distorted; exactly that at 1.
  double around(double plain, double low, double high) {
    const double drawn = between(low, high);
    return plain * (1 - distortion_) + drawn * distortion_;
  }
  // The sum of four bytes is close to normal; of mean 0 and variance 1.
  double normal() {
    const uint32_t w = word();
    const auto sum = static_cast<int>((w & 255) + (w >> 8 & 255) + (w >> 16 & 255) + (w >> 24));
    return (sum - 510) / 147.80167341;
  }

 private:
  const RandomStream& stream_;
  uint64_t next_block_;
  double distortion_;
  Philox::Block words_{};
  size_t used_ = 4;
};

// Smooth displacements: a cubic B-spline over random arrows on a grid of a quarter of the picture.
class Warp {
 public:
  Warp(Draws& draws, double size, double strength) : cell_(size / 4) {
    for (Point& p : arrows_) {
      p.x = strength * draws.normal();
      p.y = strength * draws.normal();
    }
  }

  Point operator()(Point p) const {
    const auto [column, across] = at(p.x);
    const auto [row, down] = at(p.y);
    Point moved = p;
    for (size_t j = 0; j < 4; ++j) {
      for (size_t i = 0; i < 4; ++i) {
        const Point& arrow = arrows_[(row + j) * side + column + i];
        moved.x += across[i] * down[j] * arrow.x;
        moved.y += across[i] * down[j] * arrow.y;
      }
    }
    return moved;
  }

 private:
  static constexpr size_t side = 7;  // four cells, and one arrow more on either side

  std::pair<size_t, std::array<double, 4>> at(double v) const {
    const double place = std::clamp(v / cell_, 0.0, 3.999);
    const double cell = std::floor(place), t = place - cell, u = 1 - t;
    return {static_cast<size_t>(cell),
            {u * u * u / 6, (3 * t * t * t - 6 * t * t + 4) / 6, (3 * u * u * u - 6 * u * u + 4) / 6,
             t * t * t / 6}};
  }

  double cell_;
  std::array<Point, side * side> arrows_;
};

template <typename Move>
void move_all(Polygons& polygons, const Move& move) {
  for (std::vector<Point>& polygon : polygons) {
    for (Point& p : polygon) p = move(p);
  }
}

// Rotation, shear and stretching in one. The rotation's sine and cosine come from half its tangent: the math
// library's differ from one to the next.
std::array<double, 4> random_matrix(Draws& draws) {
  const double half = draws.around(0, -0.11, 0.11);  // 12.6 degrees either way
  const double cosine = (1 - half * half) / (1 + half * half), sine = 2 * half / (1 + half * half);
  const double shear = draws.around(0, -0.22, 0.22), stretch = draws.around(1, 0.82, 1.18);
  return {cosine * stretch, cosine * shear - sine, sine * stretch, sine * shear + cosine};
}

// Into the frame, as far from its middle as was drawn and there is room.
void settle(Polygons& polygons, Draws& draws, double size, double unit) {
  const double margin = unit, drift_x = draws.around(0, -2.5, 2.5) * unit,
               drift_y = draws.around(0, -2.5, 2.5) * unit;
  const Bounds box = box_around(polygons);
  const double shrink = std::min(1.0, (size - 2 * margin) / std::max(box.width(), box.height()));
  const double room_x = (size - shrink * box.width()) / 2 - margin,
               room_y = (size - shrink * box.height()) / 2 - margin;
  const Point from{(box.left + box.right) / 2, (box.top + box.bottom) / 2},
      to{size / 2 + std::clamp(drift_x, -room_x, room_x), size / 2 + std::clamp(drift_y, -room_y, room_y)};
  move_all(polygons,
           [&](Point p) { return Point{to.x + shrink * (p.x - from.x), to.y + shrink * (p.y - from.y)}; });
}

// Each pixel, and with `share` of it the mean of its neighbours, those at its corners counting half.
std::vector<double> softened(std::span<const uint8_t> picture, uint32_t width, uint32_t height,
                             double share) {
  const auto at = [&](int64_t y, int64_t x) -> double {
    return y < 0 || x < 0 || y >= height || x >= width ? 0 : picture[static_cast<size_t>(y * width + x)];
  };
  std::vector<double> result;
  result.reserve(picture.size());
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const double near = at(y - 1, x) + at(y + 1, x) + at(y, x - 1) + at(y, x + 1),
                   far = at(y - 1, x - 1) + at(y - 1, x + 1) + at(y + 1, x - 1) + at(y + 1, x + 1);
      result.push_back((1 - share) * at(y, x) + share * (4 * at(y, x) + 2 * near + far) / 16);
    }
  }
  return result;
}

// How much bolder the digit becomes, in ems: by chance, but never so thin that it fades, nor so bold that it
// closes up. `pixels` is an em's length in the picture.
double random_weight(Draws& draws, double stroke, double pixels, double unit) {
  const double wanted = stroke * draws.around(1, 0.85, 1.25);
  const double thinnest = 1.6 * unit / pixels, boldest = std::max(stroke, 3.2 * unit / pixels);
  return std::clamp(wanted, std::min(thinnest, boldest), boldest) - stroke;
}

}  // namespace

uint32_t DigitRenderer::draw(uint64_t index, uint32_t width, uint32_t height, std::span<uint8_t> picture) {
  // Enough blocks for the noise of the largest picture, and for all else.
  constexpr uint64_t blocks_a_picture = uint64_t{1} << 20;
  const RandomStream stream = stream_for(seed_, RandomUse::digits, set_);
  Draws draws(stream, index * blocks_a_picture, distortion_);
  const uint32_t digit = draws.pick(groups_[0].faces[0].drawn().size());
  const FaceGroup& group = groups_[draws.pick(groups_.size())];
  const DigitFace& face = group.faces[draws.pick(group.faces.size())];
  const GlyphOutline& outline = face.drawn()[digit];

  const double size = std::min(width, height), unit = size / 28;
  const Polygons plain = rasterizer_.flatten(outline, 0, 0.05);
  const Bounds plain_box = box_around(plain);
  const double pixels = draws.around(20, 17, 21) * unit / std::max(plain_box.height(), plain_box.width());
  const double bolder = random_weight(draws, stroke_width(plain), pixels, unit);
  Polygons polygons = rasterizer_.flatten(outline, bolder, 1.5 * unit / pixels);
  if (polygons.empty()) polygons = plain;

  const Bounds box = box_around(polygons);
  const std::array<double, 4> m = random_matrix(draws);
  const Warp warp(draws, size, draws.around(0, 0, 1.5) * unit);
  move_all(polygons, [&](Point p) {
    const double x = (p.x - box.left - box.width() / 2) * pixels,
                 y = (p.y - box.top - box.height() / 2) * pixels;
    return warp({m[0] * x + m[1] * y + size / 2, m[2] * x + m[3] * y + size / 2});
  });
  settle(polygons, draws, size, unit);
  if (width != height) {
    const double right = (width - size) / 2, down = (height - size) / 2;
    move_all(polygons, [&](Point p) { return Point{p.x + right, p.y + down}; });
  }
  rasterizer_.fill(polygons, height, width, picture);

  const double share = draws.around(0, 0, 1), ink = draws.around(1, 0.6, 1);
  const double paper = std::max(0.0, draws.around(0, -0.12, 0.12)),
               noise = std::max(0.0, draws.around(0, -0.06, 0.09));
  const std::vector<double> soft = softened(picture, width, height, 0.7 * share * share);
  for (size_t p = 0; p < picture.size(); ++p) {
    const double value = 255 * (paper + noise * draws.normal()) + (ink - paper) * soft[p];
    picture[p] = static_cast<uint8_t>(std::clamp(std::floor(value + 0.5), 0.0, 255.0));
  }
  return digit;
}

}  // namespace vitrine
