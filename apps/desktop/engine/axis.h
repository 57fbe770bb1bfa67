// Scales for plots: round numbers around what is to be shown.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "apps/desktop/engine/curve.h"

namespace vitrine::desktop {

struct AxisScale {
  double low = 0, high = 1, step = 0.25;  // a line at every step from low to high
  bool operator==(const AxisScale&) const = default;
};

// At most six lines at 1, 2, 2.5 or 5 times a power of ten, with both numbers between the first and the last.
// Numbers that are none, or the same, get room around them.
AxisScale axis_scale(double low, double high);
// As short as tells the lines apart: "0.25", "12000", "2.5e-5".
std::string axis_label(double value, double step);

// A curve without its jumps: the mean of each point with those before and behind it, whose weight falls off
// over about a fiftieth of the points. What is no number is left out.
std::vector<double> smoothed(std::span<const CurvePoint> points);
// Neighbours joined until there are at most so many, for places that have no room to show more.
std::vector<CurvePoint> thinned(std::span<const CurvePoint> points, size_t most);

}  // namespace vitrine::desktop
