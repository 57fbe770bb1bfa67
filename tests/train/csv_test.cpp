#include <catch2/catch_test_macros.hpp>

#include "images/png_writer.h"
#include "tests/train/sample_files.h"
#include "train/data/files/csv_reader.h"
#include "train/run/training_run.h"

namespace vitrine::test {
namespace {

const DatasetOptions options{.shape = {3, 2, 2}};

void write_picture(const TemporaryFolder& folder, const std::string& name, uint8_t value) {
  std::filesystem::create_directories((folder / name).parent_path());
  const std::vector<uint8_t> bytes(12, value);
  write_png(folder / name, 2, 2, 3, bytes);
}

std::string refusal_of_csv(const std::string& text) {
  const TemporaryFolder folder;
  folder.file("train.csv", text);
  return refusal_of(folder, Split::train, options);
}

}  // namespace

TEST_CASE("rows of tables are fields between commas, in quotes where they need them") {
  std::vector<std::vector<std::string>> rows;
  std::vector<uint64_t> lines;
  read_csv(
      "\xef\xbb\xbf"
      "a,b\r\n\n\"x,\"\"y\"\"\n2\",\"\"\n,\n\"\"\nlast,",
      "a table", [&](std::span<const std::string> fields, uint64_t line) {
        rows.emplace_back(fields.begin(), fields.end());
        lines.push_back(line);
      });
  CHECK(rows ==
        std::vector<std::vector<std::string>>{{"a", "b"}, {"x,\"y\"\n2", ""}, {"", ""}, {""}, {"last", ""}});
  CHECK(lines == std::vector<uint64_t>{1, 3, 5, 6, 7});
}

TEST_CASE("a table names pictures beside it, with their classes") {
  const TemporaryFolder folder;
  write_picture(folder, "pictures/one, two.png", 10);
  write_picture(folder, "x.png", 20);
  write_picture(folder, "y.png", 30);
  folder.file("train.csv", "label,path,more\r\ndog,\"pictures/one, two.png\",1\r\nant,x.png,2\r\n");
  folder.file("val.csv", "path,label\ny.png,dog\n");
  const auto train = open_dataset(folder.path(), Split::train, options);
  REQUIRE(train->count() == 2);
  CHECK(train->class_names() == std::vector<std::string>{"ant", "dog"});
  CHECK(train->label(0) == 1);
  CHECK(train->label(1) == 0);
  CHECK(pixels_of(*train, 0) == std::vector<uint8_t>(12, 10));
  CHECK(pixels_of(*train, 1) == std::vector<uint8_t>(12, 20));
  const auto test = open_dataset(folder.path(), Split::test, options);
  CHECK(test->label(0) == 1);
  CHECK(test->classes() == 2);
  CHECK(pixels_of(*test, 0) == std::vector<uint8_t>(12, 30));
  folder.file("test.csv", "path,label\ny.png,dog\ny.png,cat\n");
  CHECK(refusal_of(folder, Split::test, options) ==
        "/test.csv, line 3: found the class \"cat\", expected one of the 2 classes of the training set");
  // Another table is other data.
  const std::string before = fingerprint_of(*train);
  folder.file("train.csv", "label,path,more\ndog,y.png,1\nant,x.png,2\n");
  CHECK(fingerprint_of(*open_dataset(folder.path(), Split::train, options)) != before);
  // Numbers stand for themselves.
  folder.file("train.csv", "path,label\nx.png,7\ny.png,0\n");
  const auto numbers = open_dataset(folder.path(), Split::train, options);
  CHECK(numbers->label(0) == 7);
  CHECK(numbers->classes() == 8);
  CHECK(numbers->class_names().empty());
  std::filesystem::remove(folder / "test.csv");
  std::filesystem::remove(folder / "val.csv");
  CHECK(refusal_of(folder, Split::test, options) ==
        ": found train.csv but neither test.csv nor val.csv, expected one of them");
  folder.file("train.csv", "path,label\nnowhere.png,0\n");
  const auto missing = open_dataset(folder.path(), Split::train, options);
  CHECK_THROWS_AS(pixels_of(*missing, 0), Error);
}

TEST_CASE("a table beside folders of pictures is the data only where it names pictures") {
  const TemporaryFolder folder;
  write_picture(folder, "train/cat/x.png", 1);
  folder.file("train.csv", "id,breed\n1,2\n");
  CHECK(open_dataset(folder.path(), Split::train, options)->class_names() == std::vector<std::string>{"cat"});
  folder.file("train.csv", "path,label\ntrain/cat/x.png,dog\n");
  CHECK(open_dataset(folder.path(), Split::train, options)->class_names() == std::vector<std::string>{"dog"});
}

TEST_CASE("tables that break their rules are refused with the line") {
  const std::string at = "/train.csv, line ";
  CHECK(refusal_of_csv("") ==
        "/train.csv: found no rows, expected a header with path and label and a row for each picture");
  CHECK(refusal_of_csv("path,label\n") ==
        "/train.csv: found no rows, expected a header with path and label and a row for each picture");
  CHECK(refusal_of_csv("file,label\nx,1\n") ==
        at + "1: found no columns path and label, expected both in the first line");
  CHECK(refusal_of_csv("path,label\nx,1\n\ny\n") == at + "4: found 1 field, expected 2 as in the first line");
  CHECK(refusal_of_csv("path,label\n\"x,1\n") == at + "2: found a quote that isn't closed, expected another");
  CHECK(refusal_of_csv("path,label\nx\"y,1\n") ==
        at + "2: found a quote inside a field, expected quotes around all of it");
  CHECK(refusal_of_csv("path,label\n\"x\"y,1\n") ==
        at + "2: found text behind a closed quote, expected a comma or the end of the line");
  CHECK(refusal_of_csv("path,label\n\"a\nb\",1\n,2\n") ==
        at + "4: found the path \"\", expected that of a picture");
  CHECK(refusal_of_csv("path,label\nx,\n") ==
        at + "2: found no label, expected a number or the name of a class");
  CHECK(refusal_of_csv("path,label\nx,\xe9t\xe9\n") ==
        at + "2: found the class \"\\xe9t\\xe9\", expected a name in UTF-8");
}

}  // namespace vitrine::test
