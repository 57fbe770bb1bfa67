#include "model/vit/position_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/util/error.h"

namespace vitrine {
namespace {

// The samples of one axis that make up one sample of the result.
struct Tap {
  uint64_t index;
  double weight;
};
using Taps = std::vector<Tap>;

// Keys' cubic convolution at distance x.
double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

// PyTorch's interpolation without antialias: samples past the edge repeat the last one.
Taps plain_taps(double center, uint64_t count, bool bilinear) {
  constexpr double a = -0.75;
  if (bilinear) center = std::max(center, 0.0);
  const double floor = std::floor(center);
  const int64_t first = static_cast<int64_t>(floor);
  Taps taps;
  for (int64_t i = bilinear ? 0 : -1; i <= (bilinear ? 1 : 2); ++i) {
    const double distance = std::abs(center - floor - static_cast<double>(i));
    const double weight = bilinear ? std::max(1 - distance, 0.0) : cubic(distance, a);
    const int64_t index = std::clamp<int64_t>(first + i, 0, static_cast<int64_t>(count) - 1);
    taps.push_back({static_cast<uint64_t>(index), weight});
  }
  return taps;
}

// With antialias, as Pillow: the filter is as much wider as the image shrinks, and cut off at the edges.
Taps antialias_taps(double center, double scale, uint64_t count, bool bilinear) {
  constexpr double a = -0.5;
  const double stretch = std::max(scale, 1.0), support = (bilinear ? 1 : 2) * stretch;
  const auto index = [&](double at) {
    return static_cast<uint64_t>(std::clamp(at + 0.5, 0.0, static_cast<double>(count)));
  };
  Taps taps;
  double sum = 0;
  for (uint64_t i = index(center - support); i < index(center + support); ++i) {
    const double distance = (static_cast<double>(i) - center + 0.5) / stretch;
    taps.push_back({i, bilinear ? std::max(1 - std::abs(distance), 0.0) : cubic(distance, a)});
    sum += taps.back().weight;
  }
  for (Tap& tap : taps) tap.weight /= sum;
  return taps;
}

// The first `count` of `to` samples.
std::vector<Taps> axis_taps(uint64_t from, uint64_t to, uint64_t count, const PositionRule& rule) {
  using enum PositionResize;
  const PositionResize r = rule.resize;
  const bool corners = r == bicubic_corners || r == bilinear_corners;
  const bool is_bilinear = r == bilinear || r == bilinear_antialias || r == bilinear_corners;
  const bool antialias = r == bicubic_antialias || r == bilinear_antialias;
  const double in = static_cast<double>(from), out = static_cast<double>(to);
  const double scale = !corners ? in / (out + rule.offset) : to > 1 ? (in - 1) / (out - 1) : 0;
  std::vector<Taps> taps;
  for (uint64_t i = 0; i < count; ++i) {
    if (r == nearest) {
      taps.push_back({{i * from / to, 1.0}});
      continue;
    }
    const double at = static_cast<double>(i);
    const double center = corners ? scale * at : scale * (at + 0.5);
    taps.push_back(antialias ? antialias_taps(center, scale, from, is_bilinear)
                             : plain_taps(corners ? center : center - 0.5, from, is_bilinear));
  }
  return taps;
}

}  // namespace

std::string PositionsName::text() const {
  return parameter + "[" + std::to_string(grid.height) + "x" + std::to_string(grid.width) + "]";
}

PositionsName positions_named(std::string_view name) {
  const size_t open = name.rfind('['), times = name.rfind('x');
  if (open == std::string_view::npos || times == std::string_view::npos || times < open ||
      !name.ends_with(']'))
    return {};
  PositionsName found{.parameter = std::string(name.substr(0, open)), .grid = {}};
  std::from_chars(name.data() + open + 1, name.data() + times, found.grid.height);
  std::from_chars(name.data() + times + 1, name.data() + name.size() - 1, found.grid.width);
  return found;
}

std::vector<float> resize_positions(std::span<const float> table, uint64_t dim, Grid from, Grid to,
                                    const PositionRule& rule) {
  const uint64_t rows = dim ? table.size() / dim : 0;
  const uint64_t known = from.patches() + rule.behind;
  if (from.patches() == 0 || to.patches() == 0 || rows < known || rows * dim != table.size()) {
    throw Error(ErrorCode::usage, "a position table of " + std::to_string(rows) +
                                      " rows cannot be resized from " + std::to_string(from.height) + "x" +
                                      std::to_string(from.width) + " to " + std::to_string(to.height) + "x" +
                                      std::to_string(to.width) + " patches");
  }
  const uint64_t others = rows - known;
  std::vector<float> result((others + to.patches() + rule.behind) * dim);
  std::ranges::copy(table.first(others * dim), result.begin());
  std::ranges::copy(table.last(rule.behind * dim),
                    result.end() - static_cast<std::ptrdiff_t>(rule.behind * dim));
  const std::span<const float> patches = table.subspan(others * dim);
  const uint64_t longer = std::max(to.height, to.width);
  const std::vector<Taps> down = axis_taps(from.height, rule.square ? longer : to.height, to.height, rule);
  const std::vector<Taps> across = axis_taps(from.width, rule.square ? longer : to.width, to.width, rule);

  float* out = &result[others * dim];
  const uint64_t line = from.width * dim;
  std::vector<double> row(line), token(dim);
  for (const Taps& rows_of : down) {
    std::ranges::fill(row, 0.0);
    for (const Tap& tap : rows_of) {
      const auto source = patches.subspan(tap.index * line, line);
      for (uint64_t i = 0; i < line; ++i) row[i] += tap.weight * static_cast<double>(source[i]);
    }
    for (const Taps& columns_of : across) {
      std::ranges::fill(token, 0.0);
      for (const Tap& tap : columns_of) {
        const double* source = &row[tap.index * dim];
        for (uint64_t i = 0; i < dim; ++i) token[i] += tap.weight * source[i];
      }
      out = std::ranges::transform(token, out, [](double value) { return static_cast<float>(value); }).out;
    }
  }
  return result;
}

}  // namespace vitrine
