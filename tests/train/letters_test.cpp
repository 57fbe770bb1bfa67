// Other characters than digits, and pictures of many sizes in folders.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "images/image.h"
#include "runtime/util/error.h"
#include "runtime/util/system.h"
#include "tests/support/temporary_folder.h"
#include "train/data/dataset.h"
#include "train/digits/digit_files.h"
#include "train/digits/digit_renderer.h"

namespace vitrine::test {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

constexpr const char* letters = "ABCDEFGHIJ";

const DigitFonts& letter_fonts() {
  static const DigitFonts fonts = [] {
    try {
      return find_digit_fonts(system::font_folders(), {}, {}, letters);
    } catch (const Error&) {
      return DigitFonts{};
    }
  }();
  if (fonts.train.empty()) SKIP("no fonts of two families (fonts-dejavu-core fonts-liberation)");
  return fonts;
}

std::set<std::string> names_of(const std::vector<FaceGroup>& groups) {
  std::set<std::string> names;
  for (const FaceGroup& group : groups) names.insert(group.name);
  return names;
}

// Path below the folder, and content.
std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      files[fs::relative(entry.path(), folder).string()] = read_whole_file(entry.path());
  }
  return files;
}

}  // namespace

TEST_CASE("letters come from the fonts that digits come from, held back as with these") {
  const DigitFonts& fonts = letter_fonts();
  const DigitFonts digits = find_digit_fonts(system::font_folders());
  CHECK(std::ranges::includes(names_of(digits.train), names_of(fonts.train)));
  CHECK(std::ranges::includes(names_of(digits.test), names_of(fonts.test)));
  for (const auto* groups : {&fonts.train, &fonts.test}) {
    for (const FaceGroup& group : *groups) {
      for (const DigitFace& face : group.faces) CHECK(face.drawn().size() == 10);
    }
  }
  // A letter that no font's designer has thought of is in none of them.
  CHECK_THROWS_MATCHES(find_digit_fonts(system::font_folders(), {}, {}, "A\x01"), Error,
                       MessageMatches(ContainsSubstring("all of the characters")));
}

TEST_CASE("letters are drawn as what they are called, in the middle of pictures of any shape") {
  const DigitFonts& fonts = letter_fonts();
  constexpr uint32_t width = 41, height = 28;
  const Rasterizer rasterizer;
  // The mean of all fonts' plain letters, of mean 0.
  std::vector<std::vector<double>> means(10, std::vector<double>(width * height));
  std::vector<uint8_t> picture(width * height);
  for (size_t c = 0; c < 10; ++c) {
    for (const FaceGroup& group : fonts.train) {
      Polygons polygons = rasterizer.flatten(group.faces[0].drawn()[c], 0, 0.1);
      const Bounds box = box_around(polygons);
      const double scale = 19 / std::max(box.width(), box.height());
      for (std::vector<Point>& polygon : polygons) {
        for (Point& p : polygon)
          p = {(p.x - box.left - box.width() / 2) * scale + width / 2.0,
               (p.y - box.top - box.height() / 2) * scale + height / 2.0};
      }
      rasterizer.fill(polygons, height, width, picture);
      for (size_t p = 0; p < picture.size(); ++p) means[c][p] += picture[p];
    }
    const double mean = std::accumulate(means[c].begin(), means[c].end(), 0.0) / (width * height);
    double squares = 0;
    for (double& v : means[c]) {
      v -= mean;
      squares += v * v;
    }
    for (double& v : means[c]) v /= std::sqrt(squares);
  }
  DigitRenderer renderer(fonts.train, height, 5, 0, 0.3);
  int right = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    const uint32_t drawn = renderer.draw(i, width, height, picture);
    std::array<double, 10> likeness{};
    for (size_t c = 0; c < 10; ++c)
      likeness[c] = std::inner_product(picture.begin(), picture.end(), means[c].begin(), 0.0);
    right += std::ranges::max_element(likeness) - likeness.begin() == static_cast<ptrdiff_t>(drawn) ? 1 : 0;
  }
  CAPTURE(right);
  CHECK(right > 300);  // 50 by chance
}

TEST_CASE("pictures in folders are a data set of odd sizes, the same whatever the threads") {
  const DigitFonts& fonts = letter_fonts();
  const TemporaryFolder one, many;
  DigitSet set{.train = 230,
               .test = 40,
               .size = 20,
               .seed = 4,
               .threads = 1,
               .format = DigitFormat::folders,
               .characters = letters};
  uint64_t last = 0;
  write_digits(one / "new/folder", fonts, set, [&](uint64_t done) {
    CHECK(done > last);
    last = done;
  });
  CHECK(last == 270);
  set.threads = 5;
  write_digits(many.path(), fonts, set);
  const auto files = files_in(many.path());
  CHECK(files == files_in(one / "new/folder"));
  CHECK(files.size() == 270);
  CHECK(many.names() == std::vector<std::string>{"test", "train"});

  const auto train = open_dataset(many.path(), Split::train, {.shape = {1, 20, 20}}),
             test = open_dataset(many.path(), Split::test, {.shape = {1, 20, 20}});
  CHECK(train->count() == 230);
  CHECK(test->count() == 40);
  CHECK(train->class_names().size() == 10);
  CHECK(train->class_names()[9] == "J");
  std::set<std::pair<uint32_t, uint32_t>> sizes;
  for (uint64_t i = 0; i < train->count(); ++i) {
    const auto picture = train->picture(i);
    CHECK((picture->width >= 20 && picture->width <= 40));
    CHECK((picture->height >= 20 && picture->height <= 40));
    sizes.emplace(picture->width, picture->height);
    // Called by its number in the set.
    DigitRenderer renderer(fonts.train, 20, 4, 0);
    std::vector<uint8_t> drawn(size_t{picture->width} * picture->height);
    const uint64_t number = std::stoull(train->file(i).stem().string());
    CHECK(renderer.draw(number, picture->width, picture->height, drawn) == train->label(i));
    bool same = true;
    for (size_t p = 0; p < drawn.size(); ++p) same = same && picture->pixels[4 * p] == drawn[p];
    CHECK(same);
  }
  CHECK(sizes.size() > 100);
  // They are nobody's to mix with others.
  CHECK_THROWS_MATCHES(write_digits(many.path(), fonts, set), Error,
                       MessageMatches(ContainsSubstring("is there already")));
  CHECK(files_in(many.path()) == files);
  set.characters = "AB";
  CHECK_THROWS_MATCHES(write_digits(one / "others", fonts, set), Error,
                       MessageMatches(ContainsSubstring("other characters")));
  // What was stopped leaves nothing.
  set.characters = letters;
  CHECK_THROWS_AS(
      write_digits(one / "stopped", fonts, set, [](uint64_t) { throw Error(ErrorCode::failed, "no"); }),
      Error);
  CHECK(files_in(one / "stopped").empty());
}

TEST_CASE("characters that can't be drawn or told apart are refused") {
  const DigitFonts& fonts = letter_fonts();
  const TemporaryFolder folder;
  const auto refuse = [&](const DigitSet& set, const char* words) {
    CHECK_THROWS_MATCHES(write_digits(folder / "none", fonts, set), Error,
                         MessageMatches(ContainsSubstring(words)));
    CHECK(!fs::exists(folder / "none"));
  };
  for (const char* characters : {"ABCA", "A/", "A.", "A B", "A\xc3\x84"})
    refuse({.train = 5, .test = 0, .characters = characters}, "each once");
  refuse({.train = 5, .test = 0, .characters = "A"}, "two or more");
  refuse({.train = 5, .test = 0, .size = 32, .format = DigitFormat::cifar10, .characters = "ABC"},
         "ten classes");
  // MNIST's format takes any number of them.
  const DigitFonts three = find_digit_fonts(system::font_folders(), {}, {}, "AB7");
  write_digits(folder / "three", three, {.train = 60, .test = 0, .characters = "AB7"});
  CHECK(open_dataset(folder / "three", Split::train)->classes() == 3);
  // A folder of IDX files is none for pictures.
  CHECK_THROWS_MATCHES(
      write_digits(folder / "three", fonts,
                   {.train = 5, .test = 0, .format = DigitFormat::folders, .characters = letters}),
      Error, MessageMatches(ContainsSubstring("another format")));
}

}  // namespace vitrine::test
