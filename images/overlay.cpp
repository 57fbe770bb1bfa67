#include "images/overlay.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "images/decoders.h"
#include "images/legend.h"
#include "images/monotone.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

// How much of the picture's own color stays: enough to know what it shows, too little to be taken for
// the map's.
constexpr double kept_color = 0.25;
// White would wash the map's colors out: the picture is brought down to this.
constexpr double white = 0.8;
// Of what the color hides where the numbers are largest, this much where they are smallest.
constexpr double least_cover = 0.55;
// How bright the picture is outside of what the numbers are about.
constexpr double outside_brightness = 0.35;

constexpr size_t map_steps = 1024;

OverlayOptions::Range range_of(std::span<const float> heat) {
  const auto [low, high] = std::minmax_element(heat.begin(), heat.end());
  return {.low = *low, .high = *high};
}

// Each pixel `factor` times in both directions.
Image enlarged(const Image& picture, uint32_t factor) {
  Image result = black_image(picture.width * factor, picture.height * factor);
  for (uint32_t y = 0; y < result.height; y++) {
    const uint8_t* row = &picture.pixels[uint64_t{y / factor} * picture.width * 4];
    uint8_t* to = &result.pixels[uint64_t{y} * result.width * 4];
    for (uint32_t x = 0; x < result.width; x++)
      std::copy_n(row + x / factor * size_t{4}, 3, to + x * size_t{4});
  }
  return result;
}

// A picture that color can be laid on: nearly grey, and not too bright.
void fade(Image& image) {
  for (size_t i = 0; i < image.pixels.size(); i += 4) {
    uint8_t* p = &image.pixels[i];
    const double light = (p[0] * 19595 + p[1] * 38470 + p[2] * 7471) / 65536.0;
    for (size_t c = 0; c < 3; c++) {
      p[c] = static_cast<uint8_t>(std::lround(white * (light + kept_color * (p[c] - light))));
    }
  }
}

// Which pixels of a line have their centres in [begin, begin + length), and where in units of cells.
struct Covered {
  uint32_t first = 0;
  std::vector<double> places;
};
Covered covered(double begin, double length, uint32_t pixels, uint32_t cells) {
  Covered result;
  for (uint32_t i = 0; i < pixels; i++) {
    const double place = (i + 0.5 - begin) / length;
    if (place < 0 || place >= 1) continue;
    if (result.places.empty()) result.first = i;
    result.places.push_back(place * cells);
  }
  return result;
}

void check(const Image& picture, std::span<const float> heat, uint32_t rows, uint32_t cols,
           const OverlayOptions& options) {
  if (rows == 0 || cols == 0 || heat.size() != uint64_t{rows} * cols || picture.pixel_count() == 0 ||
      picture.pixels.size() != picture.pixel_count() * 4) {
    throw Error(ErrorCode::usage, "cannot lay " + std::to_string(heat.size()) + " numbers as " +
                                      std::to_string(rows) + "x" + std::to_string(cols) +
                                      " over a picture of " + std::to_string(picture.width) + "x" +
                                      std::to_string(picture.height) + " pixels");
  }
  if (options.region && !(options.region->width > 0 && options.region->height > 0)) {
    throw Error(ErrorCode::usage, "cannot lay numbers over a region without pixels");
  }
  const auto broken =
      std::count_if(heat.begin(), heat.end(), [](float value) { return !std::isfinite(value); });
  if (broken > 0) {
    throw Error(ErrorCode::failed, std::to_string(broken) + " of the " + std::to_string(heat.size()) +
                                       " numbers to be shown are infinite or no numbers");
  }
}

}  // namespace

Image overlay(const Image& picture, std::span<const float> heat, uint32_t rows, uint32_t cols,
              const OverlayOptions& options) {
  check(picture, heat, rows, cols, options);
  const uint32_t shorter = std::min(picture.width, picture.height);
  const uint32_t factor = shorter >= options.least_side ? 1 : (options.least_side + shorter - 1) / shorter;
  Image image = enlarged(picture, factor);
  fade(image);

  const OverlayOptions::Region whole{.width = double(picture.width), .height = double(picture.height)};
  const OverlayOptions::Region region = options.region.value_or(whole);
  const Covered across = covered(region.left * factor, region.width * factor, image.width, cols);
  const Covered down = covered(region.top * factor, region.height * factor, image.height, rows);
  const OverlayOptions::Range range = options.range.value_or(range_of(heat));
  const double span = range.high - range.low;

  std::array<Rgb, map_steps> colors;
  for (size_t i = 0; i < map_steps; i++) colors[i] = color_of(options.map, i / (map_steps - 1.0));

  const MonotoneSurface surface(heat, rows, cols, across.places);
  std::vector<double> values(across.places.size());
  for (uint32_t y = 0; y < image.height; y++) {
    const bool row_inside = y >= down.first && y - down.first < down.places.size();
    if (row_inside) surface.row_at(down.places[y - down.first], values);
    uint8_t* pixel = &image.pixels[uint64_t{y} * image.width * 4];
    for (uint32_t x = 0; x < image.width; x++, pixel += 4) {
      if (!row_inside || x < across.first || x - across.first >= values.size()) {
        for (size_t c = 0; c < 3; c++) pixel[c] = static_cast<uint8_t>(pixel[c] * outside_brightness);
        continue;
      }
      // Numbers that are all the same have the color of the low end.
      const double warmth =
          span > 0 ? std::clamp((values[x - across.first] - range.low) / span, 0.0, 1.0) : 0;
      const double cover = options.opacity * (least_cover + (1 - least_cover) * warmth);
      const Rgb& color = colors[static_cast<size_t>(std::lround(warmth * (map_steps - 1)))];
      for (size_t c = 0; c < 3; c++) {
        pixel[c] = static_cast<uint8_t>(std::lround(pixel[c] + cover * (color[c] - pixel[c])));
      }
    }
  }
  return options.legend ? with_legend(image, options.map, range.low, range.high) : image;
}

}  // namespace vitrine
