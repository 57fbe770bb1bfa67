#include "train/data/epoch_order.h"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <numeric>
#include <set>

namespace vitrine::test {
namespace {

std::vector<uint32_t> order_of(uint64_t count, uint64_t seed, uint32_t epoch) {
  const EpochOrder order(count, seed, epoch);
  return {order.samples().begin(), order.samples().end()};
}

}  // namespace

TEST_CASE("an epoch takes every sample once, in an order of its own") {
  for (const uint64_t count : {1, 2, 3, 97, 10007}) {
    std::vector<uint32_t> samples = order_of(count, 5, 3);
    std::ranges::sort(samples);
    std::vector<uint32_t> all(count);
    std::iota(all.begin(), all.end(), 0u);
    CHECK(samples == all);
  }
  CHECK(order_of(97, 5, 3) == order_of(97, 5, 3));
  CHECK(order_of(97, 5, 3) != order_of(97, 5, 4));
  CHECK(order_of(97, 5, 3) != order_of(97, 6, 3));
  CHECK(order_of(97, uint64_t{1} << 40, 3) != order_of(97, 0, 3));
  const EpochOrder as_stored = EpochOrder::as_stored(3);
  CHECK(std::ranges::equal(as_stored.samples(), std::array{0u, 1u, 2u}));
}

// The very numbers, from a second implementation: training that was begun with another version goes on in the
// same order.
TEST_CASE("the order of an epoch never changes") {
  CHECK(order_of(10, 42, 0) == std::vector<uint32_t>{4, 2, 9, 7, 5, 8, 6, 0, 1, 3});
}

TEST_CASE("all orders of four samples are equally likely") {
  std::array<int, 256> counts{};
  constexpr int epochs = 24000;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const std::vector<uint32_t> order = order_of(4, 7, static_cast<uint32_t>(epoch));
    ++counts[order[0] * 64 + order[1] * 16 + order[2] * 4 + order[3]];
  }
  int orders = 0;
  double chi_squared = 0;
  for (const int count : counts) {
    if (count == 0) continue;
    ++orders;
    chi_squared += (count - 1000.0) * (count - 1000.0) / 1000.0;
  }
  CHECK(orders == 24);
  CHECK(chi_squared < 49.7);  // 23 degrees of freedom, exceeded by chance once in a thousand
}

TEST_CASE("an epoch of repeats takes the first samples of its order, each several times") {
  const std::vector<uint32_t> plain = order_of(10, 42, 0);
  const EpochOrder order = EpochOrder(10, 42, 0).repeated(3);
  const auto taken = order.samples();
  CHECK(std::ranges::equal(taken, std::array{plain[0], plain[0], plain[0], plain[1], plain[1], plain[1],
                                             plain[2], plain[2], plain[2], plain[3]}));
  // Each time it is drawn for anew, and without repeats by the sample's own number.
  CHECK(order.draw_number(0) != order.draw_number(1));
  CHECK(EpochOrder(10, 42, 0).draw_number(3) == plain[3]);
  CHECK(EpochOrder(10, 42, 0).repeated(1).draw_number(3) == plain[3]);
}

TEST_CASE("balanced epochs take each class as often, and of a class each sample") {
  SamplesOfClasses classes(3);
  for (uint32_t i = 0; i < 9000; ++i) classes[i < 90 ? 0 : i < 900 ? 1 : 2].push_back(i);
  const EpochOrder order = EpochOrder::balanced(classes, 1, 2);
  REQUIRE(order.samples().size() == 9000);
  std::array<int, 3> counts{};
  std::array<int, 90> rare{};
  for (const uint32_t sample : order.samples()) {
    ++counts[sample < 90 ? 0 : sample < 900 ? 1 : 2];
    if (sample < 90) ++rare[sample];
  }
  double chi_squared = 0;
  for (const int count : counts) {
    CHECK(std::abs(count - 3000) < 4 * std::sqrt(2000.0));
  }
  const double each = counts[0] / 90.0;
  for (const int count : rare) chi_squared += (count - each) * (count - each) / each;
  CHECK(chi_squared < 135.98);  // 89 degrees of freedom, exceeded by chance once in a thousand
  const EpochOrder again = EpochOrder::balanced(classes, 1, 2), other = EpochOrder::balanced(classes, 1, 3);
  CHECK(std::ranges::equal(order.samples(), again.samples()));
  CHECK_FALSE(std::ranges::equal(order.samples(), other.samples()));
}

TEST_CASE("the last batch is smaller, or left out") {
  const BatchSizes all{.samples = 10, .batch = 4}, whole{.samples = 10, .batch = 4, .drop_last = true};
  CHECK(all.batches() == 3);
  CHECK(all.size(1) == 4);
  CHECK(all.size(2) == 2);
  CHECK(all.first(2) == 8);
  CHECK(whole.batches() == 2);
  CHECK(BatchSizes{.samples = 8, .batch = 4}.batches() == 2);
  CHECK(BatchSizes{.samples = 3, .batch = 4}.size(0) == 3);
}

}  // namespace vitrine::test
