// Curves that are thinned while they grow.
#include "apps/desktop/engine/curve.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

using namespace vitrine::desktop;

TEST_CASE("a short curve is kept as it is") {
  Curve curve(8);
  for (uint64_t i = 1; i <= 8; ++i) curve.add(i, static_cast<double>(i * i));
  REQUIRE(curve.points().size() == 8);
  for (uint64_t i = 1; i <= 8; ++i) {
    const auto v = static_cast<double>(i * i);
    CHECK(curve.points()[i - 1] == CurvePoint{i, i, v, v, v});
  }
}

TEST_CASE("a long curve keeps its means, its peaks and its bound") {
  for (const uint64_t most : {2u, 7u, 10u, 2000u}) {
    for (const uint64_t count : {3u, 11u, 41u, 2001u, 5003u, 30011u}) {
      INFO(most << " points of " << count << " values");
      Curve curve(most);
      const auto value = [](uint64_t i) { return i % 997 == 5 ? 50.0 : std::cos(static_cast<double>(i)); };
      for (uint64_t i = 1; i <= count; ++i) {
        curve.add(i, value(i));
        REQUIRE(curve.points().size() <= most);
      }
      if (count > most) CHECK(curve.points().size() >= most / 2);
      uint64_t next = 1;
      for (const CurvePoint& point : curve.points()) {
        REQUIRE(point.first == next);
        double sum = 0, low = 1e9, high = -1e9;
        for (uint64_t i = point.first; i <= point.last; ++i) {
          sum += value(i);
          low = std::min(low, value(i));
          high = std::max(high, value(i));
        }
        CHECK(std::abs(point.mean - sum / static_cast<double>(point.last - point.first + 1)) < 1e-9);
        CHECK(point.low == low);
        CHECK(point.high == high);
        next = point.last + 1;
      }
      CHECK(next == count + 1);
    }
  }
}

TEST_CASE("a value that is no number is seen, and its neighbours too") {
  Curve curve(4);
  for (uint64_t i = 1; i <= 16; ++i) {
    curve.add(i, i == 6 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(i));
  }
  REQUIRE(curve.points().size() == 4);
  CHECK(std::isnan(curve.points()[1].mean));
  CHECK(curve.points()[1].low == 5);
  CHECK(curve.points()[1].high == 8);
  CHECK(curve.points()[0].mean == 2.5);
}
