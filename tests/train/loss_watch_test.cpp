#include "train/logs/loss_watch.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <string>
#include <vector>

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

// What is said of spans with these means, whose losses jump about by half.
std::vector<std::string> said_of(const std::vector<double>& means) {
  LossWatch watch;
  std::vector<std::string> said;
  uint64_t update = 0;
  for (const double mean : means) {
    for (uint64_t i = 0; i < LossWatch::span; ++i) {
      if (auto sentence = watch.add(++update, i % 2 ? 0.5 * mean : 1.5 * mean)) said.push_back(*sentence);
    }
  }
  return said;
}

}  // namespace

TEST_CASE("a loss that loses half of what it had fallen by is said to rise, once") {
  const std::vector<std::string> said = said_of({2.4, 1.2, 0.4, 1.39, 1.41, 3});
  REQUIRE(said.size() == 1);
  CHECK_THAT(said[0], ContainsSubstring("the loss rises: 1.41 is the mean of updates 201 to 250") &&
                          ContainsSubstring("began with 2.4") && ContainsSubstring("come to 0.4"));
}

TEST_CASE("a loss that never fell is said to rise when it is half as large again") {
  CHECK(said_of({2, 2.1, 2.9}).empty());
  CHECK(said_of({2, 2.1, 3.1}).size() == 1);
}

TEST_CASE("a loss that falls, stays or rises a little isn't said to rise") {
  CHECK(said_of({2.3, 2.31, 2.2, 2.3, 2.29, 2.4}).empty());  // it has hardly fallen
  CHECK(said_of({2.3, 1.5, 1.1, 1.2, 0.9, 1, 0.8}).empty());
  CHECK(said_of({5}).empty());
}

TEST_CASE("losses that aren't finite are no part of the mean") {
  LossWatch watch;
  for (uint64_t update = 1; update <= 4 * LossWatch::span; ++update) {
    CHECK(!watch.add(update, update % 2 ? 2.0 : NAN));
    CHECK(!watch.add(update, INFINITY));
  }
}

}  // namespace vitrine
