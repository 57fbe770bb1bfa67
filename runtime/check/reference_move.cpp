#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/check/reference.h"

namespace vitrine::reference {
namespace {

// The coordinates of element `i`, the slowest dimension first.
std::vector<uint64_t> coordinates(uint64_t i, const Shape& shape) {
  std::vector<uint64_t> at(shape.rank());
  for (size_t d = shape.rank(); d-- > 0; i /= shape[static_cast<int>(d)])
    at[d] = i % shape[static_cast<int>(d)];
  return at;
}

size_t from_front(const Shape& shape, int axis) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int>(shape.rank()) : axis);
}

}  // namespace

double nearest(DType to, double value) {
  if (!std::isfinite(value) || value == 0) return value;
  // The fraction's bits, and the smallest and largest exponents of normal numbers.
  const int fraction = to == DType::f16 ? 10 : to == DType::bf16 ? 7 : 23;
  const int lowest = to == DType::f16 ? -14 : -126, highest = to == DType::f16 ? 15 : 127;
  const int unit = std::max(std::ilogb(value), lowest) - fraction;
  const double rounded =
      std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);  // nearbyint: ties to even
  if (std::abs(rounded) >= std::ldexp(1.0, highest + 1)) {
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  return rounded;
}

Values slice(const Values& x, const Shape& shape, int axis, uint64_t begin, uint64_t end) {
  Values y;
  for (uint64_t i = 0; i < x.size(); ++i) {
    const uint64_t at = coordinates(i, shape)[from_front(shape, axis)];
    if (at >= begin && at < end) y.push_back(x[i]);
  }
  return y;
}

Values concat(const std::vector<Values>& parts, const std::vector<Shape>& shapes, int axis) {
  const size_t joined = from_front(shapes[0], axis);
  uint64_t outer = 1;
  for (size_t d = 0; d < joined; ++d) outer *= shapes[0][static_cast<int>(d)];
  Values y;
  for (uint64_t o = 0; o < outer; ++o) {
    for (size_t p = 0; p < parts.size(); ++p) {
      for (uint64_t i = 0; i < parts[p].size(); ++i) {
        uint64_t block = 0;
        const auto at = coordinates(i, shapes[p]);
        for (size_t d = 0; d < joined; ++d) block = block * shapes[p][static_cast<int>(d)] + at[d];
        if (block == o) y.push_back(parts[p][i]);
      }
    }
  }
  return y;
}

Values gather(const Values& x, const Shape& shape, const Values& rows) {
  const uint64_t count = shape[-2], width = shape[-1];
  Values y;
  for (uint64_t o = 0; o < x.size() / (count * width); ++o) {
    for (const double row : rows) {
      const auto number = static_cast<uint64_t>(row);
      for (uint64_t i = 0; i < width; ++i) {
        y.push_back(number < count ? x[(o * count + number) * width + i]
                                   : std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
  return y;
}

}  // namespace vitrine::reference
