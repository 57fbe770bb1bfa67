// A curve that is drawn while it grows: of any length, kept in a bounded number of points.
#pragma once

#include <cstdint>
#include <vector>

namespace vitrine::desktop {

// What some neighbouring values are together: drawn as a band from `low` to `high` with a line at `mean`,
// they show peaks that no line through fewer points would.
struct CurvePoint {
  uint64_t first = 0, last = 0;  // steps
  double mean = 0, low = 0, high = 0;
  bool operator==(const CurvePoint&) const = default;
};

class Curve {
 public:
  // From `most` points on, two neighbours become one, and each new point takes twice as many values.
  explicit Curve(uint64_t most = 2000) : most_(most) {}

  // Steps grow from call to call.
  void add(uint64_t step, double value);
  // At most `most`; the last one may be of fewer values than the others.
  const std::vector<CurvePoint>& points() const { return points_; }

 private:
  uint64_t most_;
  uint64_t values_a_point_ = 1, values_in_last_ = 0;
  std::vector<CurvePoint> points_;
};

}  // namespace vitrine::desktop
