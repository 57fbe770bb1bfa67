// Sums and products of sizes that files claim.
#pragma once

#include <cstdint>

namespace vitrine {

// False where 64 bits can't say it; `value` is anything then.
constexpr bool multiply(uint64_t& value, uint64_t by) {
  const uint64_t before = value;
  value *= by;
  return before == 0 || value / before == by;
}
constexpr bool add(uint64_t& value, uint64_t more) {
  value += more;
  return value >= more;
}

}  // namespace vitrine
