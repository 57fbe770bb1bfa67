#include "runtime/graph/memory_planner.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <set>

namespace vitrine {
namespace {

MemoryRules rules(uint64_t alignment = 1, uint64_t max_slab = 1ull << 40) {
  return {alignment, max_slab, true};
}

// Two lifetimes that overlap in time must not overlap in memory: checked step by step, byte by byte.
void require_sound(const std::vector<Lifetime>& lifetimes, const MemoryLayout& layout, uint64_t alignment) {
  for (size_t a = 0; a < lifetimes.size(); ++a) {
    const Placement& pa = layout.placements[a];
    REQUIRE(pa.offset % alignment == 0);
    REQUIRE(pa.offset + lifetimes[a].bytes <= layout.slab_bytes[pa.slab]);
    for (size_t b = a + 1; b < lifetimes.size(); ++b) {
      const Placement& pb = layout.placements[b];
      const bool together =
          lifetimes[a].first <= lifetimes[b].last && lifetimes[b].first <= lifetimes[a].last;
      const bool overlap = pa.slab == pb.slab && pa.offset < pb.offset + lifetimes[b].bytes &&
                           pb.offset < pa.offset + lifetimes[a].bytes;
      REQUIRE_FALSE((together && overlap));
    }
  }
}

uint64_t live_set_by_counting(const std::vector<Lifetime>& lifetimes) {
  uint64_t most = 0;
  for (uint32_t step = 0; step < 200; ++step) {
    uint64_t live = 0;
    for (const Lifetime& l : lifetimes) live += l.first <= step && step <= l.last ? l.bytes : 0;
    most = std::max(most, live);
  }
  return most;
}

// The least memory that any order of first-fit placement reaches, for a handful of lifetimes.
uint64_t best_by_trying_all_orders(const std::vector<Lifetime>& lifetimes) {
  std::vector<size_t> order(lifetimes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  uint64_t best = UINT64_MAX;
  do {
    std::vector<uint64_t> offsets(lifetimes.size(), 0);
    uint64_t total = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const Lifetime& mine = lifetimes[order[k]];
      uint64_t offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t j = 0; j < k; ++j) {
          const Lifetime& other = lifetimes[order[j]];
          const bool together = mine.first <= other.last && other.first <= mine.last;
          if (together && offset < offsets[order[j]] + other.bytes &&
              offsets[order[j]] < offset + mine.bytes) {
            offset = offsets[order[j]] + other.bytes;
            moved = true;
          }
        }
      }
      offsets[order[k]] = offset;
      total = std::max(total, offset + mine.bytes);
    }
    best = std::min(best, total);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST_CASE("memory planner: a chain of equal tensors needs two places") {
  const std::vector<Lifetime> lifetimes{{100, 0, 1}, {100, 1, 2}, {100, 2, 3}, {100, 3, 4}};
  const MemoryLayout layout = plan_memory(lifetimes, rules());
  CHECK(layout.total_bytes() == 200);
  CHECK(layout.largest_live_set == 200);
  CHECK(layout.placements[0].offset == layout.placements[2].offset);
  CHECK(layout.placements[1].offset == layout.placements[3].offset);
}

TEST_CASE("memory planner: a small tensor takes the tightest gap") {
  // At step 2 only A and C live; the gap that B left is tighter than the space behind C.
  const std::vector<Lifetime> lifetimes{{50, 0, 3}, {40, 0, 1}, {45, 0, 3}, {30, 2, 3}};
  const MemoryLayout layout = plan_memory(lifetimes, rules());
  CHECK(layout.total_bytes() == 135);
  require_sound(lifetimes, layout, 1);
}

TEST_CASE("memory planner: nothing shares memory when reuse is off") {
  const std::vector<Lifetime> lifetimes{{100, 0, 1}, {100, 2, 3}};
  MemoryRules no_reuse = rules();
  no_reuse.reuse = false;
  CHECK(plan_memory(lifetimes, no_reuse).total_bytes() == 200);
  CHECK(plan_memory(lifetimes, rules()).total_bytes() == 100);
}

TEST_CASE("memory planner: slabs keep to their limit, and a larger tensor gets its own") {
  const std::vector<Lifetime> lifetimes{{600, 0, 5}, {600, 0, 5}, {600, 0, 5}, {2000, 0, 5}};
  const MemoryLayout layout = plan_memory(lifetimes, rules(1, 1300));
  require_sound(lifetimes, layout, 1);
  CHECK(layout.slab_bytes == std::vector<uint64_t>{2000, 1200, 600});
}

TEST_CASE("memory planner: random lifetimes never collide, and little is wasted") {
  std::mt19937 engine(7);
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(engine() % n); };
  double worst = 1;
  for (int round = 0; round < 300; ++round) {
    std::vector<Lifetime> lifetimes;
    const uint32_t count = 1 + below(60);
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t first = below(100);
      lifetimes.push_back({1 + below(5000), first, first + static_cast<uint32_t>(below(12))});
    }
    const uint64_t alignment = 1ull << below(9);
    const MemoryLayout layout = plan_memory(lifetimes, rules(alignment));
    require_sound(lifetimes, layout, alignment);
    if (alignment == 1) {
      REQUIRE(layout.largest_live_set == live_set_by_counting(lifetimes));
      worst = std::max(
          worst, static_cast<double>(layout.total_bytes()) / static_cast<double>(layout.largest_live_set));
    }
    REQUIRE(layout.total_bytes() >= layout.largest_live_set);
  }
  CHECK(worst < 1.6);
}

TEST_CASE("memory planner: close to the best of all orders on small problems") {
  std::mt19937 engine(11);
  uint64_t ours = 0, best = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<Lifetime> lifetimes;
    for (int i = 0; i < 6; ++i) {
      const auto first = static_cast<uint32_t>(engine() % 8);
      lifetimes.push_back({1 + engine() % 100, first, first + static_cast<uint32_t>(engine() % 4)});
    }
    const uint64_t mine = plan_memory(lifetimes, rules()).total_bytes();
    const uint64_t least = best_by_trying_all_orders(lifetimes);
    REQUIRE(mine >= live_set_by_counting(lifetimes));
    ours += mine;
    best += least;
  }
  CHECK(static_cast<double>(ours) <= 1.1 * static_cast<double>(best));
}

}  // namespace
}  // namespace vitrine
