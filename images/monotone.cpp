#include "images/monotone.h"

#include <algorithm>
#include <cmath>

namespace vitrine {
namespace {

// The slope at a point between two straight pieces: none at a peak, else their harmonic mean, which is
// flat enough for a cubic to stay monotone.
double slope_between(double before, double after) {
  return before * after <= 0 ? 0 : 2 * before * after / (before + after);
}

// Slopes of points one apart; level at both ends.
void find_slopes(const double* points, size_t count, size_t stride, double* slopes) {
  for (size_t i = 0; i < count; i++) {
    const bool inside = i > 0 && i + 1 < count;
    slopes[i * stride] = inside ? slope_between(points[i * stride] - points[(i - 1) * stride],
                                                points[(i + 1) * stride] - points[i * stride])
                                : 0;
  }
}

// Hermite's cubic from 0 to 1.
double cubic(double a, double slope_a, double b, double slope_b, double t) {
  const double u = 1 - t;
  return u * u * (1 + 2 * t) * a + t * t * (3 - 2 * t) * b + u * u * t * slope_a - t * t * u * slope_b;
}

// Between which two cells' centres a place lies, and how far along.
struct Between {
  size_t before = 0, after = 0;
  double share = 0;
};
Between locate(double place, size_t count) {
  const double clamped = std::clamp(place - 0.5, 0.0, static_cast<double>(count - 1));
  const auto before = static_cast<size_t>(clamped);
  return {.before = before,
          .after = std::min(before + 1, count - 1),
          .share = clamped - static_cast<double>(before)};
}

}  // namespace

MonotoneSurface::MonotoneSurface(std::span<const float> grid, uint32_t rows, uint32_t cols,
                                 std::span<const double> columns_at)
    : rows_(rows), columns_(columns_at.size()), values_(rows * columns_), slopes_(rows * columns_) {
  std::vector<double> points(cols), slopes(cols);
  for (size_t row = 0; row < rows; row++) {
    std::copy_n(grid.begin() + static_cast<ptrdiff_t>(row * cols), cols, points.begin());
    find_slopes(points.data(), cols, 1, slopes.data());
    for (size_t i = 0; i < columns_; i++) {
      const Between at = locate(columns_at[i], cols);
      values_[row * columns_ + i] =
          cubic(points[at.before], slopes[at.before], points[at.after], slopes[at.after], at.share);
    }
  }
  for (size_t i = 0; i < columns_; i++) find_slopes(&values_[i], rows, columns_, &slopes_[i]);
}

void MonotoneSurface::row_at(double place, std::span<double> values) const {
  const Between at = locate(place, rows_);
  const size_t before = at.before * columns_, after = at.after * columns_;
  const double *a = values_.data() + before, *b = values_.data() + after;
  const double *slope_a = slopes_.data() + before, *slope_b = slopes_.data() + after;
  for (size_t i = 0; i < columns_; i++) values[i] = cubic(a[i], slope_a[i], b[i], slope_b[i], at.share);
}

}  // namespace vitrine
