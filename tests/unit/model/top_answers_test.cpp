#include "model/run/top_answers.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

namespace vitrine {

TEST_CASE("the likeliest classes come first, and equal ones in the order of their numbers") {
  const Labels labels({"zero", "one", "", "three", "four", "five"});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> probabilities{0.125f, 0.25f, nan, 0.25f, 0, 0.375f};
  const std::vector<TopAnswer> all = top_answers(probabilities, 1000, labels);
  std::vector<uint64_t> order;
  for (const TopAnswer& answer : all) order.push_back(answer.index);
  CHECK(order == std::vector<uint64_t>{5, 1, 3, 0, 4, 2});
  CHECK(all[0].label == "five");
  CHECK(all[0].probability == 0.375f);
  CHECK(all[5].label == "class 2");
  const std::vector<TopAnswer> two = top_answers(probabilities, 2, labels);
  REQUIRE(two.size() == 2);
  CHECK(two[1].label == "one");
  CHECK(top_answers({}, 5, labels).empty());
  CHECK(top_answers(probabilities, 0, labels).empty());
}

}  // namespace vitrine
