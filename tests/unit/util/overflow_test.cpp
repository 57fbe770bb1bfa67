#include "runtime/util/overflow.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

namespace vitrine {
namespace {

TEST_CASE("products and sums that 64 bits can't say are noticed") {
  constexpr uint64_t most = std::numeric_limits<uint64_t>::max();
  const auto product = [](uint64_t a, uint64_t b) { return multiply(a, b); };
  const auto sum = [](uint64_t a, uint64_t b) { return add(a, b); };
  for (const uint64_t divisor : {uint64_t{1}, uint64_t{3}, uint64_t{5}, uint64_t{1} << 32, most}) {
    CHECK(product(most / divisor, divisor));
    CHECK(product(divisor, most / divisor));
    if (divisor != 1) CHECK_FALSE(product(most / divisor + 1, divisor));
    if (divisor != 1) CHECK_FALSE(product(divisor, most / divisor + 1));
    CHECK(sum(most - divisor, divisor));
    CHECK_FALSE(sum(most - divisor + 1, divisor));
    CHECK(product(0, divisor));
    CHECK(product(divisor, 0));
  }
  // Whose lowest 64 bits are a small number.
  CHECK_FALSE(product(uint64_t{1} << 32, (uint64_t{1} << 32) + 1));
  uint64_t value = 6;
  CHECK(multiply(value, 7));
  CHECK(add(value, 8));
  CHECK(value == 50);
}

}  // namespace
}  // namespace vitrine
