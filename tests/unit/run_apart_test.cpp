// What the tests of malformed files judge memory by.
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "tests/support/corpus.h"

namespace vitrine::test {
namespace {

TEST_CASE("what an action takes is counted, and not what was there before") {
  constexpr size_t large = size_t{100} << 20;
  const auto take = [](size_t bytes) {
    const volatile std::vector<char> taken(bytes, 'x');
    static_cast<void>(taken);
  };
  CHECK(run_apart([&] { take(large); }).peak_bytes >= large);
  const std::vector<char> before(large, 'x');
  CHECK(run_apart([&] { take(1); }).peak_bytes < large / 4);
}

}  // namespace
}  // namespace vitrine::test
