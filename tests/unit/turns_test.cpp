// How what tests repeat is shared out among several runs of them.
#include "tests/support/turns.h"

#include <catch2/catch_test_macros.hpp>

namespace vitrine::test {
namespace {

TEST_CASE("a turn is a number of so many, counted round") {
  CHECK(parse_turn("3/8") == Turn{3, 8});
  CHECK(parse_turn("0/1") == Turn{0, 1});
  CHECK(parse_turn("16777215/8") == Turn{7, 8});
  for (const char* wrong :
       {"", "3", "/", "3/", "/8", "3/0", "-1/8", "3/8 ", " 3/8", "3/8/2", "a/8", "3.0/8"}) {
    INFO(wrong);
    CHECK_FALSE(parse_turn(wrong).has_value());
  }
}

TEST_CASE("all turns together leave nothing out, and none does nothing") {
  for (const size_t count : {1u, 3u, 8u, 13u, 127u}) {
    std::vector<size_t> times(count);
    for (uint64_t number = 0; number < 8; ++number) {
      size_t taken = 0;
      for (size_t i = 0; i < count; ++i) {
        if (!takes({number, 8}, i, count)) continue;
        ++times[i];
        ++taken;
      }
      INFO(count << " in turn " << number);
      CHECK(taken >= 1);
      CHECK(taken <= (count + 7) / 8);
    }
    for (const size_t of_one : times) CHECK((count < 8 ? of_one >= 1 : of_one == 1));
  }
  for (size_t i = 0; i < 5; ++i) CHECK(takes({}, i, 5));
}

TEST_CASE("a name has one turn, and every turn has names") {
  std::vector<size_t> taken(16);
  for (int i = 0; i < 1600; ++i) {
    size_t times = 0;
    for (uint64_t number = 0; number < 16; ++number) {
      if (!takes({number, 16}, "a case of " + std::to_string(i))) continue;
      ++times;
      ++taken[number];
    }
    CHECK(times == 1);
  }
  for (const size_t of_one : taken) CHECK((of_one > 50 && of_one < 200));
}

TEST_CASE("without turns, and within one, everything is run") {
  CHECK((takes_turns() || in_turn("anything")));
  const WithinTurn within;
  for (size_t i = 0; i < 99; ++i) {
    CHECK(in_turn("a kernel " + std::to_string(i)));
    CHECK(in_turn(i, 99));
  }
}

TEST_CASE("a test asks for the first time once") {
  FirstOfTest first;
  CHECK(first());
  CHECK_FALSE(first());
}

}  // namespace
}  // namespace vitrine::test
