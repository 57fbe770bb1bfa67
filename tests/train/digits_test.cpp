#include <algorithm>
#include <array>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <numeric>
#include <set>

#include "runtime/util/error.h"
#include "runtime/util/system.h"
#include "tests/support/system_fonts.h"
#include "tests/train/sample_files.h"
#include "train/digits/digit_files.h"
#include "train/digits/digit_renderer.h"

namespace vitrine::test {
namespace {

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

std::set<std::string> files_of(const std::vector<FaceGroup>& groups) {
  std::set<std::string> files;
  for (const FaceGroup& group : groups) {
    for (const DigitFace& face : group.faces) files.insert(face.file.string() + " " + face.style);
  }
  return files;
}

// Closed polygons of points on the curve.
GlyphOutline outline_of(const std::vector<std::vector<Point>>& contours) {
  GlyphOutline outline;
  for (const std::vector<Point>& contour : contours) {
    for (const Point& p : contour) {
      outline.x.push_back(static_cast<int32_t>(p.x * GlyphOutline::units_per_em));
      outline.y.push_back(static_cast<int32_t>(p.y * GlyphOutline::units_per_em));
      outline.tags.push_back(1);
    }
    outline.contour_ends.push_back(static_cast<uint16_t>(outline.x.size() - 1));
  }
  return outline;
}

GlyphOutline bar() { return outline_of({{{0, 0}, {0, 0.125}, {1, 0.125}, {1, 0}}}); }

}  // namespace

TEST_CASE("a pixel's value is the share of it that is covered") {
  const Rasterizer rasterizer;
  std::vector<uint8_t> coverage(5 * 6, 99);
  rasterizer.fill({{{1.5, 1}, {4, 1}, {4, 3.25}, {1.5, 3.25}}}, 5, 6, coverage);
  const int quarter = 64, half = 128, eighth = 32;
  const std::vector<int> expected{0, 0,      0,       0,       0, 0,  //
                                  0, half,   255,     255,     0, 0,  //
                                  0, half,   255,     255,     0, 0,  //
                                  0, eighth, quarter, quarter, 0, 0, 0, 0, 0, 0, 0, 0};
  for (size_t p = 0; p < coverage.size(); ++p) {
    CAPTURE(p, int{coverage[p]}, expected[p]);
    CHECK(std::abs(coverage[p] - expected[p]) <= 1);
  }
  // What lies outside is cut off, and no harm.
  rasterizer.fill({{{-1e30, -1e30}, {1e30, -1e30}, {1e30, 1e30}, {-1e30, 1e30}}}, 5, 6, coverage);
  CHECK(std::ranges::all_of(coverage, [](uint8_t c) { return c == 255; }));
  rasterizer.fill({}, 5, 6, coverage);
  CHECK(std::ranges::all_of(coverage, [](uint8_t c) { return c == 0; }));
}

TEST_CASE("outlines become polygons with short edges, and bolder ones have wider strokes") {
  const Rasterizer rasterizer;
  const Polygons polygons = rasterizer.flatten(bar(), 0, 0.1);
  REQUIRE(polygons.size() == 1);
  for (size_t i = 1; i < polygons[0].size(); ++i) {
    const Point a = polygons[0][i - 1], b = polygons[0][i];
    CHECK(std::hypot(a.x - b.x, a.y - b.y) <= 0.1 + 1e-9);
  }
  const Bounds box = box_around(polygons);
  CHECK(box.width() == Approx(1));
  CHECK(box.height() == Approx(0.125));
  CHECK(box.top == Approx(-0.125));  // y points down
  CHECK(stroke_width(polygons) == Approx(2 * 0.125 / 2.25));
  for (const double bolder : {-0.03125, 0.03125, 0.0625})
    CHECK(box_around(rasterizer.flatten(bar(), bolder, 0.1)).height() == Approx(0.125 + bolder).margin(1e-3));
  CHECK(rasterizer.flatten({}, 0, 0.1).empty());
}

TEST_CASE("a circle of curves has a circle's area") {
  const Rasterizer rasterizer;
  // Sixteen conic arcs: points off the curve alone, as TrueType allows.
  GlyphOutline outline = outline_of({{}});
  outline.contour_ends = {15};
  for (int i = 0; i < 16; ++i) {
    const double angle = 2 * 3.14159265358979 * i / 16, r = 0.25 / std::cos(3.14159265358979 / 16);
    outline.x.push_back(static_cast<int32_t>(std::lround(r * std::cos(angle) * GlyphOutline::units_per_em)));
    outline.y.push_back(static_cast<int32_t>(std::lround(r * std::sin(angle) * GlyphOutline::units_per_em)));
    outline.tags.push_back(0);
  }
  Polygons polygons = rasterizer.flatten(outline, 0, 0.01);
  for (std::vector<Point>& polygon : polygons) {
    for (Point& p : polygon) p = {p.x * 64 + 20, p.y * 64 + 20};
  }
  std::vector<uint8_t> coverage(40 * 40);
  rasterizer.fill(polygons, 40, 40, coverage);
  CHECK(std::accumulate(coverage.begin(), coverage.end(), 0) / 255.0 ==
        Approx(3.14159265 * 16 * 16).epsilon(0.005));
}

TEST_CASE("the system's fonts are split so that no family is in both parts") {
  const DigitFonts& fonts = system_fonts();
  std::set<std::string> train, test;
  for (const FaceGroup& group : fonts.train) train.insert(group.name);
  for (const FaceGroup& group : fonts.test) test.insert(group.name);
  CHECK(!test.empty());
  for (const std::string& name : test) CHECK(!train.contains(name));
  const size_t groups = train.size() + test.size();
  CHECK(test.size() == (groups < 4 ? 1 : groups / 4));
  for (const auto* part : {&fonts.train, &fonts.test}) {
    for (const FaceGroup& group : *part) {
      for (const DigitFace& face : group.faces) {
        const std::string& name = group.name;
        // Groups that share a face are one, under the first of their names.
        if (group.faces.size() == 1) CHECK(std::tolower(face.family[0]) == name[0]);
        CHECK(!face.family.starts_with("FontAwesome"));
      }
    }
  }
  std::vector<std::filesystem::path> folders = system::font_folders();
  std::ranges::reverse(folders);
  const DigitFonts again = find_digit_fonts(folders);
  CHECK(files_of(again.train) == files_of(fonts.train));
  CHECK(files_of(again.test) == files_of(fonts.test));
}

// A face that two families share, as where one is the other under a new name, keeps them together.
TEST_CASE("families with the same digits are one group") {
  const DigitFonts& fonts = system_fonts();
  const DigitFace &face = fonts.train[0].faces[0], &other = fonts.test[0].faces[0];
  std::string content = read_whole_file(face.file), renamed = content;
  const auto wide = [](const std::string& text) {
    std::string bytes;
    for (const char c : text) bytes += std::string(1, '\0') + c;
    return bytes;
  };
  // The name in both encodings; FreeType checks no sums.
  for (const auto& name : {face.family, wide(face.family)}) {
    for (size_t at = renamed.find(name); at != std::string::npos; at = renamed.find(name, at + 1))
      renamed[at + (name[0] == '\0' ? 1 : 0)] = '#';
  }
  const TemporaryFolder folder;
  const std::string end = face.file.extension().string();
  folder.file("a" + end, content);
  folder.file("b" + end, renamed);
  folder.file("c" + other.file.extension().string(), read_whole_file(other.file));
  const DigitFonts found = find_digit_fonts(std::vector<std::filesystem::path>{folder.path()});
  REQUIRE(found.train.size() == 1);
  REQUIRE(found.test.size() == 1);
  std::set<std::string> together;
  for (const auto* part : {&found.train, &found.test}) {
    for (const FaceGroup& group : *part) {
      if (group.faces.size() > 1) {
        for (const DigitFace& f : group.faces) together.insert(f.family);
      }
    }
  }
  CHECK(together.size() == 2);
  CHECK(together.contains(face.family));
}

// What digits are made of, whatever the font: that '0' is a ring and so on.
TEST_CASE("digits of fonts are the digits that they are called") {
  const DigitFonts& fonts = system_fonts();
  const std::array<size_t, 10> contours{2, 1, 1, 1, 2, 1, 2, 1, 3, 2};
  for (size_t d = 0; d < 10; ++d) {
    size_t faces = 0, as_expected = 0;
    for (const auto* part : {&fonts.train, &fonts.test}) {
      for (const FaceGroup& group : *part) {
        for (const DigitFace& face : group.faces) {
          ++faces;
          as_expected += face.digits[d].contour_ends.size() == contours[d] ? 1 : 0;
        }
      }
    }
    CAPTURE(d, faces, as_expected);
    CHECK(2 * as_expected > faces);
  }
}

TEST_CASE("test fonts can be named, and names that nothing has are refused") {
  const DigitFonts& fonts = system_fonts();
  std::string name = fonts.train[0].faces[0].family;
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const DigitFonts named = find_digit_fonts(system::font_folders(), std::vector{name});
  CHECK(files_of(named.test) == files_of({fonts.train[0]}));
  CHECK_THROWS_AS(find_digit_fonts(system::font_folders(), std::vector<std::string>{"no such family"}),
                  Error);
  std::vector<std::string> all;
  for (const auto* part : {&fonts.train, &fonts.test}) {
    for (const FaceGroup& group : *part) all.push_back(group.faces[0].family);
  }
  CHECK_THROWS_AS(find_digit_fonts(system::font_folders(), all), Error);
}

TEST_CASE("a folder without fonts is an error that says what to install") {
  const TemporaryFolder folder;
  folder.file("a.ttf", "no font");
  folder.file("deep/er/b.otf", "");
  folder.file("notes.txt", "nothing");
  try {
    find_digit_fonts(std::vector<std::filesystem::path>{folder.path()});
    FAIL("found some");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::failed);
    CHECK(std::string(error.what()).starts_with("found no fonts with digits in 2 font files, expected"));
    CHECK(std::string(error.what()).find("fonts-dejavu-core") != std::string::npos);
  }
}

TEST_CASE("fonts that are cut or spoilt are left out or read, and do no harm") {
  const DigitFonts& fonts = system_fonts();
  const TemporaryFolder folder;
  const std::string good = read_whole_file(fonts.train[0].faces[0].file);
  const auto try_file = [&](const std::string& content) {
    folder.file("x.ttf", content);
    try {
      find_digit_fonts(std::vector<std::filesystem::path>{folder.path()});
      FAIL("one file cannot be two families");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::failed);
    }
  };
  for (size_t length = 0; length < good.size(); length += length < 100 ? 7 : good.size() / 60 + 1)
    try_file(good.substr(0, length));
  for (uint32_t i = 0; i < 150; ++i) {
    std::string spoilt = good;
    for (uint32_t k = 0; k < 20; ++k) {
      // In the tables' directory first, then anywhere.
      const size_t range = i < 50 ? 300 : good.size();
      spoilt[(i * 7919u + k * 104729u) % std::min(range, good.size())] = static_cast<char>(i * 31 + k * 17);
    }
    try_file(spoilt);
  }
}

TEST_CASE("a digit is a function of seed, set and number") {
  const DigitFonts& fonts = system_fonts();
  const auto draw = [&](uint64_t seed, uint32_t set, uint64_t index) {
    DigitRenderer renderer(fonts.train, 28, seed, set);
    std::vector<uint8_t> picture(28 * 28, 55);
    const uint32_t digit = renderer.draw(index, picture);
    CHECK(digit < 10);
    picture.push_back(static_cast<uint8_t>(digit));
    return picture;
  };
  CHECK(draw(1, 0, 5) == draw(1, 0, 5));
  CHECK(draw(1, 0, 5) != draw(2, 0, 5));
  CHECK(draw(1, 0, 5) != draw(1, 1, 5));
  CHECK(draw(1, 0, 5) != draw(1, 0, 6));
}

// Means of the fonts' plain digits, the simplest of all classifiers, tell the pictures apart much better than
// chance: labels and pictures belong together.
TEST_CASE("the pictures show the digits of their labels, white on black, inside the frame") {
  const DigitFonts& fonts = system_fonts();
  for (const uint32_t size : {16u, 28u, 61u}) {
    const size_t pixels = size_t{size} * size;
    DigitRenderer renderer(fonts.train, size, 3, 0);
    const Rasterizer rasterizer;
    std::vector<uint8_t> picture(pixels);
    std::vector<std::vector<double>> mean(10, std::vector<double>(pixels));
    for (size_t d = 0; d < 10; ++d) {
      for (const FaceGroup& group : fonts.train) {
        Polygons polygons = rasterizer.flatten(group.faces[0].digits[d], 0, 0.1);
        const Bounds box = box_around(polygons);
        const double scale = 0.7 * size / std::max(box.width(), box.height());
        for (std::vector<Point>& polygon : polygons) {
          for (Point& p : polygon)
            p = {(p.x - box.left - box.width() / 2) * scale + size / 2.0,
                 (p.y - box.top - box.height() / 2) * scale + size / 2.0};
        }
        rasterizer.fill(polygons, size, size, picture);
        for (size_t p = 0; p < pixels; ++p) mean[d][p] += picture[p];
      }
      double average = 0, squares = 0;
      for (const double v : mean[d]) average += v / static_cast<double>(pixels);
      for (double& v : mean[d]) {
        v -= average;
        squares += v * v;
      }
      for (double& v : mean[d]) v /= std::sqrt(squares);
    }
    std::vector<double> counts(10);
    int right = 0;
    for (uint64_t i = 0; i < 2000; ++i) {
      const uint32_t digit = renderer.draw(i, picture);
      ++counts[digit];
      const double sum = std::accumulate(picture.begin(), picture.end(), 0.0) / static_cast<double>(pixels);
      CHECK(sum > 5);    // there is something,
      CHECK(sum < 128);  // and it is white on black
      double edge = 0;
      for (size_t p = 0; p < pixels; ++p) {
        const size_t y = p / size, x = p % size;
        if (y == 0 || x == 0 || y == size - 1 || x == size - 1) edge = std::max<double>(edge, picture[p]);
      }
      // Paper at 0.12, noise of 0.09 (3.5 deviations at most) and softness; ink is 0.6 at least.
      CHECK(edge < 0.6 * 255);
      std::vector<double> likeness(10);
      for (size_t d = 0; d < 10; ++d)
        likeness[d] = std::inner_product(picture.begin(), picture.end(), mean[d].begin(), 0.0);
      right += std::ranges::max_element(likeness) - likeness.begin() == static_cast<ptrdiff_t>(digit) ? 1 : 0;
    }
    for (const double count : counts) CHECK(count > 140);  // 200, less four standard deviations and more
    CAPTURE(size, right);
    CHECK(right > 600);  // of 2000, and 200 by chance
  }
}

TEST_CASE("the distortion says how far pictures are from their font's digits") {
  const DigitFonts& fonts = system_fonts();
  const std::vector<FaceGroup> one_face{FaceGroup{.faces = {fonts.train[0].faces[0]}}};
  const uint32_t size = 28;
  const size_t pixels = size_t{size} * size, pictures = 200;
  std::vector<uint8_t> digits(pictures);
  const auto draw_all = [&](double distortion) {
    DigitRenderer renderer(one_face, size, 3, 0, distortion);
    std::vector<uint8_t> all(pictures * pixels);
    for (size_t i = 0; i < pictures; ++i)
      digits[i] = static_cast<uint8_t>(renderer.draw(i, std::span(all).subspan(i * pixels, pixels)));
    return all;
  };
  const std::vector<uint8_t> plain = draw_all(0), most = draw_all(1);
  const std::vector<uint8_t> labels = digits;

  // Without any, one face has ten pictures: sharp, white, on black, and in the middle.
  std::set<std::vector<uint8_t>> different;
  for (size_t i = 0; i < pictures; ++i) {
    const std::span picture = std::span(plain).subspan(i * pixels, pixels);
    different.emplace(picture.begin(), picture.end());
    CHECK(std::ranges::max(picture) == 255);
    size_t left = size, right = 0, top = size, bottom = 0;
    for (size_t p = 0; p < pixels; ++p) {
      if (picture[p] == 0) continue;
      left = std::min(left, p % size);
      right = std::max(right, p % size);
      top = std::min(top, p / size);
      bottom = std::max(bottom, p / size);
    }
    CAPTURE(i, labels[i], left, right, top, bottom);
    const size_t extent =
        std::max(right - left, bottom - top) + 1;  // 20 pixels, but thin strokes are made bolder
    CHECK(extent >= 20);
    CHECK(extent <= 22);
    const size_t across = left + right, down = top + bottom;  // size - 1 where both margins are the same
    CHECK(across + 2 >= size);
    CHECK(across <= size);
    CHECK(down + 2 >= size);
    CHECK(down <= size);
  }
  CHECK(different.size() == 10);

  // The same digits whatever it is, further from the plain ones the more there is of it.
  double last = 0;
  for (const double distortion : {0.25, 0.5, 0.75, 1.0}) {
    const std::vector<uint8_t> all = draw_all(distortion);
    CHECK(digits == labels);
    double distance = 0;
    for (size_t p = 0; p < all.size(); ++p) distance += std::abs(all[p] - plain[p]);
    CAPTURE(distortion, distance, last);
    CHECK(distance > 1.1 * last);
    last = distance;
  }
  DigitRenderer renderer(one_face, size, 3, 0);
  std::vector<uint8_t> picture(pixels);
  for (const size_t i : {0, 57, 199}) {
    renderer.draw(i, picture);
    CHECK(std::ranges::equal(picture, std::span(most).subspan(i * pixels, pixels)));
  }
}

TEST_CASE("digit files are the same whatever the threads, and are MNIST's") {
  const DigitFonts& fonts = system_fonts();
  const TemporaryFolder one, many;
  const char* names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                         "t10k-labels-idx1-ubyte"};
  // Pictures of 4 KB: the training set takes more than one part.
  DigitSet set{.train = 1100, .test = 30, .size = 64, .seed = 9, .threads = 1};
  uint64_t last = 0;
  write_digits(one / "new/folder", fonts, set, [&](uint64_t done) {
    CHECK(done > last);
    last = done;
  });
  CHECK(last == 1130);
  set.threads = 5;
  write_digits(many.path(), fonts, set);
  for (const char* name : names) {
    CAPTURE(name);
    CHECK(read_whole_file(one / "new/folder" / name) == read_whole_file(many / name));
  }
  CHECK(many.names().size() == 4);
  const auto train = open_dataset(many.path(), Split::train), test = open_dataset(many.path(), Split::test);
  CHECK(train->count() == 1100);
  CHECK(test->count() == 30);
  CHECK(train->shape() == SampleShape{1, 64, 64});
  CHECK(train->classes() == 10);
  DigitRenderer renderer(fonts.train, 64, 9, 0);
  std::vector<uint8_t> picture(64 * 64);
  for (const uint64_t i : {0, 1, 1023, 1024, 1099}) {
    CHECK(renderer.draw(i, picture) == train->label(i));
    CHECK(pixels_of(*train, i) == picture);
  }

  const TemporaryFolder only_test;
  write_digits(only_test.path(), fonts, {.train = 0, .test = 3});
  CHECK(only_test.names() == std::vector<std::string>{names[2], names[3]});
}

TEST_CASE("digits in colors are CIFAR-10's files, whatever the threads") {
  const DigitFonts& fonts = system_fonts();
  const TemporaryFolder one, many, plain;
  DigitSet set{.train = 213, .test = 9, .size = 32, .seed = 9, .threads = 1, .format = DigitFormat::cifar10};
  write_digits(one.path(), fonts, set);
  set.threads = 5;
  write_digits(many.path(), fonts, set);
  const std::vector<std::string> names{"batches.meta.txt", "data_batch_1.bin", "data_batch_2.bin",
                                       "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
                                       "test_batch.bin"};
  CHECK(many.names() == names);
  for (const std::string& name : names) CHECK(read_whole_file(one / name) == read_whole_file(many / name));
  const auto train = open_dataset(many.path(), Split::train), test = open_dataset(many.path(), Split::test);
  CHECK(train->count() == 213);
  CHECK(test->count() == 9);
  CHECK(train->shape() == SampleShape{3, 32, 32});
  CHECK(train->class_names() == std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});

  // The same digits as white on black: where these are bright, the colors are the ink's.
  set.format = DigitFormat::mnist;
  write_digits(plain.path(), fonts, set);
  const auto grey = open_dataset(plain.path(), Split::train);
  std::set<std::vector<uint8_t>> inks;
  for (uint64_t i = 0; i < grey->count(); ++i) {
    CAPTURE(i);
    REQUIRE(train->label(i) == grey->label(i));
    const std::vector<uint8_t> white = pixels_of(*grey, i), colored = pixels_of(*train, i);
    const auto brightest = static_cast<size_t>(std::ranges::max_element(white) - white.begin()),
               darkest = static_cast<size_t>(std::ranges::min_element(white) - white.begin());
    std::vector<uint8_t> ink;
    for (size_t c = 0; c < 3; ++c) {
      ink.push_back(colored[c * 1024 + brightest]);
      REQUIRE(ink[c] > colored[c * 1024 + darkest]);
    }
    inks.insert(ink);
  }
  CHECK(inks.size() > 200);

  // Without distortion they are white on black again.
  set = {.train = 5, .test = 0, .size = 32, .seed = 9, .distortion = 0, .format = DigitFormat::cifar10};
  write_digits(one / "plain", fonts, set);
  set.format = DigitFormat::mnist;
  write_digits(many / "plain", fonts, set);
  const auto white = open_dataset(many / "plain", Split::train),
             same = open_dataset(one / "plain", Split::train);
  for (uint64_t i = 0; i < 5; ++i) {
    const std::vector<uint8_t> expected = pixels_of(*white, i), pixels = pixels_of(*same, i);
    for (size_t p = 0; p < pixels.size(); ++p) REQUIRE(pixels[p] == expected[p % 1024]);
  }
}

TEST_CASE("the paper of tinted digits tells them apart, in training and test alike") {
  const DigitFonts& fonts = system_fonts();
  const TemporaryFolder folder;
  DigitSet set{.train = 200, .test = 100, .size = 32, .format = DigitFormat::cifar10, .tinted = true};
  write_digits(folder.path(), fonts, set);
  // The corner that no digit reaches: of each digit the least and the most in a channel.
  std::array<std::array<std::pair<int, int>, 3>, 10> seen;
  for (auto& digit : seen) digit.fill({255, 0});
  for (const Split split : {Split::train, Split::test}) {
    const auto data = open_dataset(folder.path(), split);
    for (uint64_t i = 0; i < data->count(); ++i) {
      const std::vector<uint8_t> pixels = pixels_of(*data, i);
      for (size_t c = 0; c < 3; ++c) {
        // Noise and softening reach it: the median of the top row.
        std::vector<uint8_t> row(pixels.begin() + static_cast<ptrdiff_t>(c * 1024),
                                 pixels.begin() + static_cast<ptrdiff_t>(c * 1024 + 32));
        std::ranges::sort(row);
        auto& [least, most] = seen[data->label(i)][c];
        least = std::min<int>(least, row[8]);
        most = std::max<int>(most, row[8]);
      }
    }
  }
  for (size_t a = 0; a < 10; ++a) {
    for (size_t b = 0; b < a; ++b) {
      CAPTURE(a, b);
      bool apart = false;
      for (size_t c = 0; c < 3; ++c)
        apart = apart || seen[a][c].first > seen[b][c].second || seen[b][c].first > seen[a][c].second;
      CHECK(apart);
    }
  }
  set.format = DigitFormat::mnist;
  CHECK_THROWS_WITH(write_digits(folder / "grey", fonts, set), ContainsSubstring("in colors can be tinted"));
}

TEST_CASE("CIFAR-10's format has its own size and number of files, and a folder of its own") {
  const DigitFonts& fonts = system_fonts();
  const TemporaryFolder folder;
  const DigitSet good{.train = 5, .test = 0, .size = 32, .format = DigitFormat::cifar10};
  DigitSet set = good;
  set.size = 28;
  CHECK_THROWS_WITH(write_digits(folder / "a", fonts, set), ContainsSubstring("32 pixels a side, 28 were"));
  set = good;
  set.train = 4;
  CHECK_THROWS_WITH(write_digits(folder / "a", fonts, set), ContainsSubstring("five training files"));
  CHECK(folder.names().empty());
  write_digits(folder / "mnist", fonts, {.train = 0, .test = 3});
  CHECK_THROWS_WITH(write_digits(folder / "mnist", fonts, good), ContainsSubstring("another format"));
  write_digits(folder / "cifar", fonts, good);
  CHECK(open_dataset(folder / "cifar", Split::train)->count() == 5);
  CHECK_THROWS_WITH(write_digits(folder / "cifar", fonts, {.train = 0, .test = 3}),
                    ContainsSubstring("data_batch_1.bin"));
}

TEST_CASE("digits that can't be written are an error, and nothing is left behind") {
  const DigitFonts& fonts = system_fonts();
  const TemporaryFolder folder;
  folder.file("taken", "");
  CHECK_THROWS_AS(write_digits(folder / "taken", fonts, {.train = 5, .test = 5}), Error);
  std::filesystem::create_directories(folder / "out/t10k-labels-idx1-ubyte");
  CHECK_THROWS_AS(write_digits(folder / "out", fonts, {.train = 5, .test = 5}), Error);
  CHECK(folder.names() == std::vector<std::string>{"out", "taken"});
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder / "out")) ++files;
  CHECK(files == 1);
}

}  // namespace vitrine::test
