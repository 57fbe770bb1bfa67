#include "images/overlay.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "images/color_map.h"
#include "images/monotone.h"
#include "runtime/util/error.h"

namespace vitrine::test {
namespace {

Image plain(uint32_t width, uint32_t height, uint8_t value = 128) {
  Image image{
      .width = width, .height = height, .pixels = std::vector<uint8_t>(size_t{width} * height * 4, value)};
  for (size_t i = 3; i < image.pixels.size(); i += 4) image.pixels[i] = 255;
  return image;
}

Rgb pixel(const Image& image, uint32_t x, uint32_t y) {
  const uint8_t* p = &image.pixels[(size_t{y} * image.width + x) * 4];
  return {p[0], p[1], p[2]};
}

// OKLab's lightness: even steps of it look even.
double lightness(const Rgb& color) {
  const auto linear = [](uint8_t byte) {
    const double c = byte / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  const double r = linear(color[0]), g = linear(color[1]), b = linear(color[2]);
  return 0.2104542553 * std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) +
         0.7936177850 * std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) -
         0.0040720468 * std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
}

std::string refusal(const std::function<void()>& action, ErrorCode code) {
  try {
    action();
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
}

TEST_CASE("a color map's lightness rises all the way") {
  for (const ColorMap map : {ColorMap::inferno, ColorMap::viridis, ColorMap::grey}) {
    INFO(name_of(map));
    CHECK(color_map_named(name_of(map)) == map);
    for (int i = 0; i < 64; i++) {
      INFO(i);
      CHECK(lightness(color_of(map, (i + 1) / 64.0)) > lightness(color_of(map, i / 64.0)) + 0.002);
    }
    CHECK(color_of(map, -1) == color_of(map, 0));
    CHECK(color_of(map, 7) == color_of(map, 1));
  }
  CHECK(color_of(ColorMap::inferno, 0) == Rgb{0, 0, 4});
  CHECK(color_of(ColorMap::inferno, 1) == Rgb{252, 255, 164});
  CHECK(color_of(ColorMap::viridis, 7 / 17.0) == Rgb{0x29, 0x7b, 0x8e});
  CHECK(color_of(ColorMap::grey, 0.5) == Rgb{128, 128, 128});
  CHECK_THAT(
      refusal([] { color_map_named("jet"); }, ErrorCode::usage),
      Catch::Matchers::Equals("there is no color map \"jet\", expected one of inferno, viridis, grey"));
}

// Every third place along a row or column is a cell's centre.
std::vector<double> thirds(uint32_t cells) {
  std::vector<double> places;
  for (uint32_t i = 0; i < 3 * cells; i++) places.push_back((i + 0.5) / 3);
  return places;
}

TEST_CASE("a surface goes through its numbers and never past them") {
  constexpr uint32_t rows = 5, cols = 7;
  std::vector<float> grid;
  uint32_t state = 3;
  for (uint32_t i = 0; i < rows * cols; i++)
    grid.push_back(static_cast<float>((state = state * 1664525 + 1013904223) >> 20));
  const MonotoneSurface surface(grid, rows, cols, thirds(cols));
  std::vector<std::vector<double>> values;
  for (const double place : thirds(rows)) {
    values.emplace_back(3 * cols);
    surface.row_at(place, values.back());
  }
  for (uint32_t y = 0; y < 3 * rows; y++) {
    for (uint32_t x = 0; x < 3 * cols; x++) {
      INFO(x << ", " << y);
      // The four cells around: what lies between them may not leave their range.
      const uint32_t left = x < 1 ? 0 : (x - 1) / 3, up = y < 1 ? 0 : (y - 1) / 3;
      const uint32_t right = std::min(left + (x >= 1 && x % 3 != 1), cols - 1);
      const uint32_t down = std::min(up + (y >= 1 && y % 3 != 1), rows - 1);
      const auto [low, high] = std::minmax({grid[up * cols + left], grid[up * cols + right],
                                            grid[down * cols + left], grid[down * cols + right]});
      CHECK(values[y][x] >= low - 1e-9 * high);
      CHECK(values[y][x] <= high + 1e-9 * high);
      if (x % 3 == 1 && y % 3 == 1)
        CHECK_THAT(values[y][x], Catch::Matchers::WithinRel(grid[y / 3 * cols + x / 3] + 0.0, 1e-12));
    }
  }
}

TEST_CASE("a surface of a slope is a slope") {
  const std::vector<float> grid{0, 1, 2, 3, 4, 5};
  const std::vector<double> places{0.5, 1.5, 2.25, 3, 3.7, 5.5};
  for (const bool across : {true, false}) {
    const MonotoneSurface surface(grid, across ? 1 : 6, across ? 6 : 1,
                                  across ? places : std::vector<double>{0.5});
    for (size_t i = 2; i < 5; i++) {
      std::vector<double> value(across ? places.size() : 1);
      surface.row_at(across ? 0.5 : places[i], value);
      CHECK_THAT(value[across ? i : 0], Catch::Matchers::WithinAbs(places[i] - 0.5, 1e-12));
    }
  }
}

TEST_CASE("warm patches are where their numbers are") {
  // Four by two patches of 25 pixels; one is warm.
  const Image picture = plain(100, 50);
  std::vector<float> heat(8, 1.0F);
  heat[1 * 4 + 2] = 3;
  const OverlayOptions options{.opacity = 1, .least_side = 1, .legend = false};
  const Image image = overlay(picture, heat, 2, 4, options);
  REQUIRE(image.width == 100);
  REQUIRE(image.height == 50);
  CHECK(pixel(image, 62, 37) == color_of(ColorMap::inferno, 1));
  // Elsewhere the picture shines through the map's dark end, and neither gets lighter than the other.
  CHECK(pixel(image, 12, 12) == pixel(image, 87, 12));
  CHECK(pixel(image, 12, 12) == pixel(image, 12, 37));
  CHECK(lightness(pixel(image, 12, 12)) < lightness(pixel(picture, 12, 12)));
  double before = 0;
  for (uint32_t x = 37; x <= 62; x++) {
    const double light = lightness(pixel(image, x, 37));
    CHECK(light >= before);
    before = light;
  }
  for (size_t i = 3; i < image.pixels.size(); i += 4) REQUIRE(image.pixels[i] == 255);
}

TEST_CASE("the range of the numbers may be given") {
  const std::vector<float> heat{0, 1, 2, 9};
  OverlayOptions options{
      .opacity = 1, .range = OverlayOptions::Range{.low = 1, .high = 2}, .least_side = 1, .legend = false};
  const Image image = overlay(plain(40, 10), heat, 1, 4, options);
  CHECK(pixel(image, 4, 4) == pixel(image, 14, 4));   // below and at the low end
  CHECK(pixel(image, 25, 4) == pixel(image, 35, 4));  // at and above the high one
  CHECK(pixel(image, 35, 4) == color_of(ColorMap::inferno, 1));
  // Numbers that are all the same have no warm end.
  const Image level = overlay(plain(40, 10), std::vector<float>(4, 5.0F), 1, 4,
                              {.opacity = 1, .least_side = 1, .legend = false});
  CHECK(pixel(level, 4, 4) == pixel(image, 4, 4));
}

TEST_CASE("what the model did not see is dark") {
  OverlayOptions options{
      .opacity = 1, .region = OverlayOptions::Region{20, 5, 20, 20}, .least_side = 1, .legend = false};
  const std::vector<float> heat{0, 0, 0, 1};
  const Image image = overlay(plain(60, 30, 200), heat, 2, 2, options);
  CHECK(pixel(image, 35, 20) == color_of(ColorMap::inferno, 1));
  for (const auto& [x, y] : {std::pair{19u, 15u}, {40u, 15u}, {30u, 4u}, {30u, 25u}}) {
    CHECK(pixel(image, x, y)[0] == pixel(image, x, y)[2]);
    CHECK(pixel(image, x, y)[0] < 70);
  }
  CHECK(pixel(image, 20, 5) != pixel(image, 19, 5));
  CHECK(pixel(image, 39, 24) != pixel(image, 40, 24));
  // It may reach past the picture, when a model's crop was padded.
  options.region = OverlayOptions::Region{-10, -10, 80, 50};
  CHECK(pixel(overlay(plain(60, 30), heat, 2, 2, options), 0, 0) != Rgb{0, 0, 0});
  options.region = OverlayOptions::Region{100, 0, 10, 10};
  CHECK(overlay(plain(60, 30), heat, 2, 2, options).width == 60);
}

TEST_CASE("small pictures are enlarged, and a legend stands beside") {
  const std::vector<float> heat{0, 0.25F};
  const Image image = overlay(plain(28, 20), heat, 1, 2, {.least_side = 100, .legend = false});
  CHECK(image.width == 140);
  CHECK(image.height == 100);
  for (const uint32_t side : {1u, 9u, 20u, 300u, 1000u}) {
    INFO(side);
    const Image with = overlay(plain(side, side), heat, 1, 2, {.map = ColorMap::viridis, .least_side = 1});
    CHECK(with.height == side);
    REQUIRE(with.width > side + 12);
    // The pictures are the same, and the bar has the map's ends.
    const Image without =
        overlay(plain(side, side), heat, 1, 2, {.map = ColorMap::viridis, .least_side = 1, .legend = false});
    CHECK(pixel(with, side - 1, side / 2) == pixel(without, side - 1, side / 2));
    if (side < 100) continue;
    const uint32_t scale = std::max(1u, side / 240), bar = side + 12 * scale;
    CHECK(pixel(with, bar, 6 * scale) == color_of(ColorMap::viridis, 1));
    CHECK(pixel(with, bar, side - 6 * scale - 1) == color_of(ColorMap::viridis, 0));
    CHECK(pixel(with, bar, 1) == Rgb{255, 255, 255});
  }
}

TEST_CASE("what can't be shown is told") {
  using Catch::Matchers::ContainsSubstring;
  const Image picture = plain(10, 10);
  const auto with = [&](std::vector<float> heat, uint32_t rows, uint32_t cols,
                        const OverlayOptions& options = {}) {
    return [=, &picture] { overlay(picture, heat, rows, cols, options); };
  };
  CHECK_THAT(refusal(with({1, 2, 3}, 2, 2), ErrorCode::usage), ContainsSubstring("3 numbers as 2x2"));
  CHECK_THAT(refusal(with({}, 0, 2), ErrorCode::usage), ContainsSubstring("0 numbers"));
  CHECK_THAT(refusal(with({1}, 1, 1, {.region = OverlayOptions::Region{}}), ErrorCode::usage),
             ContainsSubstring("region"));
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  CHECK_THAT(refusal(with({1, nan, -infinity, 2}, 2, 2), ErrorCode::failed),
             ContainsSubstring("2 of the 4 numbers"));
}

}  // namespace
}  // namespace vitrine::test
