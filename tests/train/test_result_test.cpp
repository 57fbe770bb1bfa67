#include "train/test_result.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/util/error.h"

namespace vitrine {
namespace {

using Catch::Matchers::WithinRel;

TEST_CASE("a test's loss is the mean cross-entropy, its accuracy the share of right samples") {
  TestSums sums;
  const std::vector<float> first{0, 0, 0, 1000, 1, 2}, second{1, 3, 2};
  sums.add(first, std::vector<uint32_t>{2, 0});
  sums.add(second, std::vector<uint32_t>{1});
  const double third = std::log(std::exp(-2.0) + 1 + std::exp(-1.0));
  CHECK_THAT(sums.result().loss, WithinRel((std::log(3.0) + 0 + third) / 3, 1e-12));
  CHECK_THAT(sums.result().accuracy, WithinRel(2.0 / 3, 1e-12));
  CHECK(sums.samples() == 3);
}

TEST_CASE("a test's loss hides no NaN, and no label that there is not") {
  TestSums sums;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  sums.add(std::vector<float>{1, nan}, std::vector<uint32_t>{0});
  CHECK(std::isnan(sums.result().loss));
  CHECK_THROWS_AS(sums.add(std::vector<float>{1, 2}, std::vector<uint32_t>{2}), Error);
}

}  // namespace
}  // namespace vitrine
