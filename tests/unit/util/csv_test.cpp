#include "runtime/util/csv.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

using vitrine::csv_cell;

TEST_CASE("a cell is in quotes where it has to be, and no spreadsheet computes it") {
  CHECK(csv_cell("a class") == "a class");
  CHECK(csv_cell("") == "");
  CHECK(csv_cell("a,b") == "\"a,b\"");
  CHECK(csv_cell("say \"no\"\n") == "\"say \"\"no\"\"\n\"");
  CHECK(csv_cell("=1+2") == "'=1+2");
  CHECK(csv_cell("@SUM(A1)") == "'@SUM(A1)");
  CHECK(csv_cell("+cmd|' /C calc'!A0") == "'+cmd|' /C calc'!A0");
  CHECK(csv_cell("-2+3,4") == "\"'-2+3,4\"");
  CHECK(csv_cell("\t=1") == "'\t=1");
  // Numbers are what they are.
  CHECK(csv_cell("-1.5e-3") == "-1.5e-3");
  CHECK(csv_cell("+7") == "+7");
  CHECK(csv_cell("-") == "'-");
  CHECK(csv_cell("+") == "'+");
  CHECK(csv_cell("a=b") == "a=b");
}

TEST_CASE("numbers read back as they were") {
  CHECK(csv_cell(0.1) == "0.1");
  CHECK(csv_cell(0.1f) == "0.1");
  CHECK(csv_cell(-1e-300) == "-1e-300");
  CHECK(csv_cell(std::numeric_limits<double>::quiet_NaN()) == "nan");
}
