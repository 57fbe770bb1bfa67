#include "images/legend.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>

#include "images/decoders.h"
#include "images/small_text.h"

namespace vitrine {
namespace {

constexpr Rgb paper{255, 255, 255}, ink{32, 32, 32};

std::string label(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.3g", value == 0 ? 0.0 : value);  // no "-0"
  return text.data();
}

}  // namespace

Image with_legend(const Image& picture, ColorMap map, double low, double high) {
  const uint32_t scale = std::max(1u, picture.height / 240);
  const uint32_t margin = 6 * scale, bar_width = 12 * scale, text_height = small_letter_height * scale;
  const std::array<std::string, 3> labels{label(high), label(low / 2 + high / 2), label(low)};
  size_t longest = 0;
  for (const std::string& text : labels) longest = std::max(longest, text.size());
  const uint32_t text_left = picture.width + margin + bar_width + margin / 2;

  Image result = black_image(
      text_left + static_cast<uint32_t>(longest) * small_letter_advance * scale + margin / 2, picture.height);
  for (uint64_t y = 0; y < picture.height; y++) {
    std::memcpy(&result.pixels[y * result.width * 4], &picture.pixels[y * picture.width * 4],
                picture.width * size_t{4});
  }
  fill_box(result, {picture.width, 0, result.width - picture.width, result.height}, paper);
  if (picture.height <= 2 * margin) return result;  // no room for a bar
  const PixelBox bar{picture.width + margin, margin, bar_width, picture.height - 2 * margin};
  fill_box(result, {bar.left - 1, bar.top - 1, bar.width + 2, bar.height + 2}, ink);
  for (uint32_t y = 0; y < bar.height; y++) {
    const double value = bar.height == 1 ? 1 : 1 - static_cast<double>(y) / (bar.height - 1);
    fill_box(result, {bar.left, bar.top + y, bar.width, 1}, color_of(map, value));
  }
  // The middle one and the low one only where they don't run into each other.
  write_small(result, text_left, bar.top, scale, labels[0], ink);
  if (bar.height >= 4 * text_height) {
    write_small(result, text_left, bar.top + bar.height / 2 - text_height / 2, scale, labels[1], ink);
  }
  if (bar.height >= 2 * text_height + scale) {
    write_small(result, text_left, bar.top + bar.height - text_height, scale, labels[2], ink);
  }
  return result;
}

}  // namespace vitrine
