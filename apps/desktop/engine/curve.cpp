#include "apps/desktop/engine/curve.h"

#include <cmath>

namespace vitrine::desktop {
namespace {

// Of two points, weighted by how many values they stand for. A NaN stays in the mean and leaves the band
// alone.
CurvePoint joined(const CurvePoint& a, double a_values, const CurvePoint& b, double b_values) {
  return {.first = a.first,
          .last = b.last,
          .mean = (a.mean * a_values + b.mean * b_values) / (a_values + b_values),
          .low = std::fmin(a.low, b.low),
          .high = std::fmax(a.high, b.high)};
}

}  // namespace

void Curve::add(uint64_t step, double value) {
  const CurvePoint one{step, step, value, value, value};
  if (!points_.empty() && values_in_last_ < values_a_point_) {
    points_.back() = joined(points_.back(), static_cast<double>(values_in_last_), one, 1);
    ++values_in_last_;
    return;
  }
  if (points_.size() + 1 > most_ && points_.size() > 1) {
    // All are of values_a_point_ values here. Of an odd number the last stays by itself, half full.
    std::vector<CurvePoint> half;
    half.reserve(points_.size() / 2 + 1);
    for (size_t i = 0; i + 1 < points_.size(); i += 2)
      half.push_back(joined(points_[i], 1, points_[i + 1], 1));
    const bool odd = points_.size() % 2 == 1;
    if (odd) half.push_back(points_.back());
    points_ = std::move(half);
    values_in_last_ = odd ? values_a_point_ : 2 * values_a_point_;
    values_a_point_ *= 2;
    return add(step, value);
  }
  points_.push_back(one);
  values_in_last_ = 1;
}

}  // namespace vitrine::desktop
