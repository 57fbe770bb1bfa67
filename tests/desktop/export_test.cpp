#include "apps/desktop/engine/export.h"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <limits>
#include <string>

#include "runtime/util/error.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::desktop {
namespace {

// RFC 4180's grammar, read strictly.
std::vector<CsvRow> parsed(const std::string& text) {
  std::vector<CsvRow> rows(1);
  std::string field;
  size_t i = 0;
  const auto end_field = [&] { rows.back().push_back(std::exchange(field, {})); };
  while (i < text.size()) {
    if (text[i] == '"') {
      for (++i;; ++i) {
        REQUIRE(i < text.size());
        if (text[i] != '"') {
          field += text[i];
        } else if (i + 1 < text.size() && text[i + 1] == '"') {
          field += text[i++];
        } else {
          break;
        }
      }
      ++i;
      REQUIRE((text[i] == ',' || text[i] == '\r'));
    } else if (text[i] == ',') {
      end_field();
      ++i;
    } else if (text[i] == '\r') {
      REQUIRE(text.substr(i, 2) == "\r\n");
      end_field();
      rows.emplace_back();
      i += 2;
    } else {
      REQUIRE(text[i] != '\n');
      field += text[i++];
    }
  }
  rows.pop_back();  // behind the last line's end
  return rows;
}

}  // namespace

TEST_CASE("CSV is quoted where it must be, and only there") {
  const std::vector<CsvRow> rows{{"a", "b c", ""},
                                 {"tench, Tinca tinca", "the \"king\"", "two\nlines"},
                                 {"\r\n", "\"", ","},
                                 {"\xc3\xa4", "'", " x "},
                                 {""}};
  const std::string text = csv_text(rows);
  CHECK(text.starts_with("a,b c,\r\n\"tench, Tinca tinca\",\"the \"\"king\"\"\",\"two\nlines\"\r\n"));
  CHECK(text.ends_with("\xc3\xa4,', x \r\n\"\"\r\n"));
  CHECK(parsed(text) == rows);
}

TEST_CASE("numbers read back as the same numbers") {
  for (const double value : {0.1, 1.0 / 3, 1e-300, 12345678.9, -0.0, 0.9123002290725708}) {
    CHECK(std::strtod(csv_number(value).c_str(), nullptr) == value);
    const auto single = static_cast<float>(value);
    CHECK(std::strtof(csv_number(single).c_str(), nullptr) == single);
  }
  CHECK(csv_number(0.1f) == "0.1");
  CHECK(csv_number(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(csv_number(std::numeric_limits<float>::quiet_NaN()) == "nan");
}

TEST_CASE("what is on the screen becomes tables") {
  const std::vector<TopAnswer> answers{{3, "three", 0.75f}, {7, "seven, or so", 0.25f}};
  CHECK(answer_rows(answers) == std::vector<CsvRow>{{"rank", "index", "label", "probability"},
                                                    {"1", "3", "three", "0.75"},
                                                    {"2", "7", "seven, or so", "0.25"}});
  // Two heads and their mean, of 1 x 2 patches; then a lone map.
  const std::vector<float> weights{0.25f, 0.5f, 0.75f, 1, 0.5f, 0.75f};
  CHECK(map_rows(weights, 1, 2) == std::vector<CsvRow>{{"map", "row", "column", "weight"},
                                                       {"head 0", "0", "0", "0.25"},
                                                       {"head 0", "0", "1", "0.5"},
                                                       {"head 1", "0", "0", "0.75"},
                                                       {"head 1", "0", "1", "1"},
                                                       {"mean", "0", "0", "0.5"},
                                                       {"mean", "0", "1", "0.75"}});
  CHECK(map_rows(weights, 3, 2).back() == CsvRow{"map", "2", "1", "0.75"});
  CHECK_THROWS_AS(map_rows(weights, 4, 1), Error);
  const ProfileResult profile{
      .total_seconds = 4, .steps = {{"blocks.0.attn", "attention", "tiled", 1}}, .bars = {}};
  CHECK(profile_rows(profile) ==
        std::vector<CsvRow>{{"step", "node", "operator", "kernel", "seconds", "share"},
                            {"0", "blocks.0.attn", "attention", "tiled", "1", "0.25"}});
}

TEST_CASE("a CSV file is written whole or not at all") {
  const test::TemporaryFolder folder;
  const std::vector<CsvRow> rows{{"a", "b"}, {"1", "2"}};
  write_csv(folder / "x.csv", rows);
  CHECK(test::read_whole_file(folder / "x.csv") == "a,b\r\n1,2\r\n");
  write_csv(folder / "x.csv", std::vector<CsvRow>{{"c"}});
  CHECK(test::read_whole_file(folder / "x.csv") == "c\r\n");
  CHECK_THROWS_AS(write_csv(folder / "none" / "x.csv", rows), Error);
  CHECK(folder.names() == std::vector<std::string>{"x.csv"});
}

}  // namespace vitrine::desktop
