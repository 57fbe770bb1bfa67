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

TEST_CASE("the five largest of a sample's numbers are counted, the first of equal ones before the others") {
  const auto top5 = [](const std::vector<float>& row, uint32_t label) {
    TestSums sums;
    sums.add(row, std::vector<uint32_t>{label});
    return sums.result().top5;
  };
  const std::vector<float> falling{7, 6, 5, 4, 3, 2, 1}, equal(7, 0.5f);
  for (uint32_t label = 0; label < 7; ++label) {
    CHECK(top5(falling, label) == (label < 5 ? 1 : 0));
    CHECK(top5(equal, label) == (label < 5 ? 1 : 0));
  }
  CHECK(top5({1, 2, 3, 4, 5, 6}, 0) == 0);
  CHECK(top5({1, 2, 3, 4, 5, 6}, 1) == 1);
  CHECK(top5({3, 1, 2}, 1) == 1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(top5({9, 8, 7, 6, 5, nan, 4}, 5) == 0);
  TestSums several;
  several.add(std::vector<float>{7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2}, std::vector<uint32_t>{4, 5});
  CHECK(several.result().top5 == 0.5);
  CHECK(several.result().accuracy == 0);
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
