#include "train/logs/confusion.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/util/error.h"
#include "tests/support/temporary_folder.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

// Three cats, of which one is taken for a dog; a dog that is taken for one; no "cow, brown", for which the
// second dog is taken.
Confusion pets() {
  Confusion confusion(3, {"cat", "dog", "cow, \"brown\""});
  confusion.add(std::vector<float>{5, 1, 1, 5, 1, 1, 1, 5, 5}, std::vector<uint32_t>{0, 0, 0});
  confusion.add(std::vector<float>{0, 1, 0, 0, 1, 2}, std::vector<uint32_t>{1, 1});
  return confusion;
}

TEST_CASE("a confusion matrix counts what was taken for what, of equal numbers the first") {
  const Confusion confusion = pets();
  const uint64_t expected[3][3] = {{2, 1, 0}, {0, 1, 1}, {0, 0, 0}};
  for (uint64_t label = 0; label < 3; ++label) {
    for (uint64_t p = 0; p < 3; ++p) CHECK(confusion.count(label, p) == expected[label][p]);
  }
  CHECK(confusion.labelled() == std::vector<uint64_t>{3, 2, 0});
  CHECK(confusion.predicted() == std::vector<uint64_t>{2, 2, 1});
  CHECK(confusion.figures(0).precision == 1);
  CHECK(confusion.figures(0).recall == 2.0 / 3);
  CHECK(confusion.figures(1).precision == 0.5);
  CHECK(confusion.figures(1).recall == 0.5);
  CHECK(confusion.figures(2).precision == 0);
  CHECK(std::isnan(confusion.figures(2).recall));
  Confusion none(2);
  CHECK_THROWS_AS(none.add(std::vector<float>{1, 2, 3}, std::vector<uint32_t>{0}), Error);
}

TEST_CASE("a confusion matrix is written as JSON and CSV") {
  const Confusion confusion = pets();
  CHECK(to_json(confusion).dump() ==
        R"({"classes":[{"name":"cat","count":3,"precision":1.0,"recall":0.6666666666666666},)"
        R"({"name":"dog","count":2,"precision":0.5,"recall":0.5},)"
        R"({"name":"cow, \"brown\"","count":0,"precision":0.0,"recall":null}],)"
        R"("confusion":[[2,1,0],[0,1,1],[0,0,0]]})");
  CHECK(to_csv(confusion) ==
        "label \\ predicted,cat,dog,\"cow, \"\"brown\"\"\",count,precision,recall\n"
        "cat,2,1,0,3,1,0.6666666666666666\n"
        "dog,0,1,1,2,0.5,0.5\n"
        "\"cow, \"\"brown\"\"\",0,0,0,0,0,\n");
  Confusion unnamed(2);
  CHECK_THAT(to_csv(unnamed), ContainsSubstring("predicted,0,1,count"));
}

TEST_CASE("a confusion matrix's picture has a shade for each count, whatever the number of classes") {
  for (const uint64_t classes : {1, 2, 3, 10, 64, 65, 1000, 5000}) {
    INFO(classes);
    Confusion confusion(classes);
    const auto label = static_cast<uint32_t>(classes - 1);
    std::vector<float> row(classes);
    row[label] = 1;
    confusion.add(row, std::vector<uint32_t>{label});
    const Image image = picture_of(confusion);
    REQUIRE(image.pixels.size() == image.pixel_count() * 4);
    CHECK(image.width <= 6000);
    // Dark, in the lower right corner, and the paper's color where nothing was counted.
    size_t dark = 0, lower_right = 0;
    for (uint64_t y = 0; y < image.height; ++y) {
      for (uint64_t x = 0; x < image.width; ++x) {
        const uint8_t* p = &image.pixels[(y * image.width + x) * 4];
        if (p[0] != 8 || p[1] != 48 || p[2] != 107) continue;
        ++dark;
        lower_right += classes < 10 || (x > image.width / 2 && y > image.height / 2);
      }
    }
    CHECK(dark > 0);
    CHECK(dark == lower_right);
  }
  CHECK_THROWS_AS(picture_of(Confusion(20'000)), Error);
}

TEST_CASE("a confusion matrix goes into files whose names say what they are") {
  const test::TemporaryFolder folder;
  write_confusion(folder / "a.csv", pets());
  CHECK_THAT(test::read_whole_file(folder / "a.csv"), ContainsSubstring("cat,2,1,0"));
  write_confusion(folder / "a.png", pets());
  CHECK(decode_image(folder / "a.png").pixels == picture_of(pets()).pixels);
  CHECK_THROWS_AS(write_confusion(folder / "a.txt", pets()), Error);
  CHECK(folder.names() == std::vector<std::string>{"a.csv", "a.png"});
}

}  // namespace
}  // namespace vitrine
