// Digits drawn in the desktop app's window.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/desktop_app/desktop.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

// As somebody draws them, on a canvas whose corners are 0 0 and 1 1.
const std::string three =
    "0.3 0.25 0.42 0.16 0.6 0.17 0.68 0.28 0.62 0.4 0.46 0.46 0.64 0.52 0.72 0.66 0.62 0.8 0.44 "
    "0.85 0.3 0.76";
const std::string one = "0.42 0.3 0.53 0.18 0.53 0.5 0.53 0.85";
const std::string seven = "0.28 0.2 0.5 0.2 0.72 0.2 0.6 0.5 0.47 0.84";

}  // namespace

TEST_CASE("strokes of a 3 are read as a 3, and of other digits as these") {
  test::Desktop desktop;
  desktop.play(
      "view draw\nwait\nexpect digit \"\"\nstroke " + three + "\nwait\nexpect digit 3\nshot $/three.png\n" +
      "export-csv $/three.csv\nwait\nclear\nwait\nexpect digit \"\"\nstroke " + one +
      "\nwait\nexpect digit 1\nclear\nstroke " + seven + "\nwait\nexpect digit 7\nexpect errors 0\n");
  CHECK_THAT(desktop.written("three.csv"), ContainsSubstring("probability"));
}

TEST_CASE("a digit that is drawn with the mouse is read while it is drawn") {
  test::Desktop desktop;
  // Two strokes of one digit: what is read after the first one is read again after the second.
  desktop.play("view draw\nwait\ndrag canvas " + three +
               "\nwait\nexpect digit 3\nkey ctrl+z\nwait\nexpect digit \"\"\n" + "drag canvas " + one +
               "\nwait\nexpect digit 1\nkey delete\nwait\nexpect digit \"\"\nexpect errors 0\n");
}

}  // namespace vitrine
