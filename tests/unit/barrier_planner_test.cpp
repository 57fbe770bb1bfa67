#include "runtime/graph/barrier_planner.h"

#include <catch2/catch_test_macros.hpp>
#include <random>

namespace vitrine {
namespace {

RangeUse read(uint64_t space, uint64_t begin, uint64_t end) { return {space, begin, end, true, false}; }
RangeUse write(uint64_t space, uint64_t begin, uint64_t end) { return {space, begin, end, false, true}; }

bool conflict(const std::vector<RangeUse>& a, const std::vector<RangeUse>& b) {
  for (const RangeUse& x : a) {
    for (const RangeUse& y : b) {
      if (x.space != y.space || (!x.writes && !y.writes)) continue;
      for (uint64_t byte = x.begin; byte < x.end; ++byte) {
        if (byte >= y.begin && byte < y.end) return true;
      }
    }
  }
  return false;
}

TEST_CASE("barriers: two readers need none, a reader after a writer does") {
  BarrierPlanner planner;
  CHECK_FALSE(planner.step(std::vector{write(0, 0, 100)}));
  CHECK(planner.step(std::vector{read(0, 0, 100), write(0, 100, 200)}));
  CHECK_FALSE(planner.step(std::vector{read(0, 0, 100), write(0, 200, 300)}));
  CHECK(planner.step(std::vector{read(0, 250, 260)}));
}

TEST_CASE("barriers: writing over what was read or written needs one") {
  BarrierPlanner planner;
  CHECK_FALSE(planner.step(std::vector{read(0, 0, 64)}));
  CHECK(planner.step(std::vector{write(0, 63, 80)}));
  CHECK(planner.step(std::vector{write(0, 79, 90)}));
}

TEST_CASE("barriers: touching ranges and other buffers are no hazard") {
  BarrierPlanner planner;
  CHECK_FALSE(planner.step(std::vector{write(0, 0, 64)}));
  CHECK_FALSE(planner.step(std::vector{write(0, 64, 128)}));
  CHECK_FALSE(planner.step(std::vector{write(1, 0, 64)}));
}

TEST_CASE("barriers: every hazard of a random program is covered, and no barrier is idle") {
  std::mt19937 engine(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::vector<RangeUse>> steps(30);
    std::vector<bool> barrier;
    BarrierPlanner planner;
    for (auto& uses : steps) {
      for (int i = 0; i < 3; ++i) {
        const uint64_t begin = engine() % 60;
        uses.push_back({engine() % 3, begin, begin + 1 + engine() % 10, true, false});
        if (i == 2) uses.back() = {uses.back().space, begin, uses.back().end, engine() % 4 == 0, true};
      }
      barrier.push_back(planner.step(uses));
    }
    for (size_t b = 0; b < steps.size(); ++b) {
      bool hazard = false;
      for (size_t a = b; a-- > 0 && !hazard;) {
        // Steps before the last barrier are done; between it and b nothing may conflict unheeded.
        if (barrier[a + 1] && a + 1 < b) break;
        hazard = conflict(steps[a], steps[b]);
      }
      REQUIRE(hazard == barrier[b]);
    }
  }
}

}  // namespace
}  // namespace vitrine
