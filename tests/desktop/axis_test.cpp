#include "apps/desktop/engine/axis.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <numeric>

using namespace vitrine::desktop;

TEST_CASE("axes have few lines at round numbers around what is shown") {
  CHECK(axis_scale(0, 1).step == 0.2);
  CHECK(axis_scale(0, 1e-323).step > 0);
  CHECK(axis_scale(0, 5e-4).high == 5e-4);
  for (const double low : {-3.7, 0.0, 0.013, 2.0, 995.0, 1e-7}) {
    for (const double width : {1e-9, 3e-4, 0.7, 1.0, 12.0, 123456.0}) {
      const AxisScale scale = axis_scale(low, low + width);
      CAPTURE(low, width, scale.low, scale.high, scale.step);
      CHECK(scale.low <= low);
      CHECK(scale.high >= low + width * 0.999);
      const double lines = (scale.high - scale.low) / scale.step;
      CHECK(std::abs(lines - std::round(lines)) < 1e-6);
      CHECK(lines >= 1);
      CHECK(lines <= 6);
    }
  }
  // Nothing, one number, and what is no number.
  const double none = std::numeric_limits<double>::infinity();
  CHECK(axis_scale(none, -none) == AxisScale{});
  CHECK(axis_scale(0, 0).low == 0);
  CHECK(axis_scale(0.7, 0.7).low < 0.7);
  CHECK(axis_scale(0.7, 0.7).high > 0.7);
  const AxisScale huge = axis_scale(-1.7e308, 1.7e308);
  CHECK(std::isfinite(huge.step));
}

TEST_CASE("numbers at an axis are as short as tells them apart") {
  CHECK(axis_label(0.25, 0.25) == "0.25");
  CHECK(axis_label(0.5, 0.25) == "0.50");
  CHECK(axis_label(3, 1) == "3");
  CHECK(axis_label(12000, 4000) == "12000");
  CHECK(axis_label(1.5e-4, 5e-5) == "1.5e-4");
  CHECK(axis_label(2e-4, 5e-5) == "2e-4");
  CHECK(axis_label(3e9, 1e9) == "3e9");
  CHECK(axis_label(1e-17, 0.2) == "0");
}

TEST_CASE("a smoothed curve stays in place, and leaves out what is no number") {
  std::vector<CurvePoint> points;
  for (uint64_t i = 0; i < 1000; ++i) {
    const double value = i == 500 ? std::numeric_limits<double>::quiet_NaN() : (i % 2 == 0 ? 1.0 : 3.0);
    points.push_back({i, i, value, value, value});
  }
  const std::vector<double> smooth = smoothed(points);
  REQUIRE(smooth.size() == points.size());
  for (size_t i = 0; i < smooth.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(smooth[i] - 2) < 0.15);
  }
  // Few points are shown as they are.
  CHECK(smoothed(std::span(points).first(3)) == std::vector<double>{1, 3, 1});
  const std::vector<CurvePoint> fewer = thinned(points, 100);
  CHECK(fewer.size() == 100);
  CHECK(fewer[3] == CurvePoint{30, 39, 2, 1, 3});
  CHECK(thinned(points, 5000).size() == 1000);
  CHECK(thinned({}, 10).empty());
}
