#include "images/legend.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "images/decoders.h"

namespace vitrine {
namespace {

constexpr Rgb paper{255, 255, 255}, ink{32, 32, 32};

// What printf writes numbers with, five by seven dots each, a string a row.
constexpr std::string_view letters = "0123456789.-+e";
constexpr uint32_t letter_width = 5, letter_height = 7, letter_advance = 6;
constexpr std::array<std::array<uint8_t, letter_height>, letters.size()> dots{{
    {0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110},
    {0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110},
    {0b01110, 0b10001, 0b00001, 0b00010, 0b00100, 0b01000, 0b11111},
    {0b11111, 0b00010, 0b00100, 0b00010, 0b00001, 0b10001, 0b01110},
    {0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010},
    {0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110},
    {0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110},
    {0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000},
    {0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110},
    {0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100},
    {0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b01100, 0b01100},
    {0b00000, 0b00000, 0b00000, 0b01110, 0b00000, 0b00000, 0b00000},
    {0b00000, 0b00100, 0b00100, 0b11111, 0b00100, 0b00100, 0b00000},
    {0b00000, 0b00000, 0b01110, 0b10001, 0b11111, 0b10000, 0b01110},
}};

struct Box {
  uint32_t left, top, width, height;
};

void fill(Image& image, const Box& box, const Rgb& color) {
  const uint32_t right = std::min(box.left + box.width, image.width);
  const uint32_t bottom = std::min(box.top + box.height, image.height);
  for (uint32_t y = box.top; y < bottom; y++) {
    for (uint32_t x = box.left; x < right; x++) {
      std::copy(color.begin(), color.end(), &image.pixels[(uint64_t{y} * image.width + x) * 4]);
    }
  }
}

void write(Image& image, uint32_t left, uint32_t top, uint32_t scale, std::string_view text) {
  for (const char letter : text) {
    const size_t index = letters.find(letter);
    for (uint32_t y = 0; index != std::string_view::npos && y < letter_height; y++) {
      for (uint32_t x = 0; x < letter_width; x++) {
        if ((dots[index][y] >> (letter_width - 1 - x) & 1) == 0) continue;
        fill(image, {left + x * scale, top + y * scale, scale, scale}, ink);
      }
    }
    left += letter_advance * scale;
  }
}

std::string label(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.3g", value == 0 ? 0.0 : value);  // no "-0"
  return text.data();
}

}  // namespace

Image with_legend(const Image& picture, ColorMap map, double low, double high) {
  const uint32_t scale = std::max(1u, picture.height / 240);
  const uint32_t margin = 6 * scale, bar_width = 12 * scale, text_height = letter_height * scale;
  const std::array<std::string, 3> labels{label(high), label(low / 2 + high / 2), label(low)};
  size_t longest = 0;
  for (const std::string& text : labels) longest = std::max(longest, text.size());
  const uint32_t text_left = picture.width + margin + bar_width + margin / 2;

  Image result = black_image(text_left + static_cast<uint32_t>(longest) * letter_advance * scale + margin / 2,
                             picture.height);
  for (uint64_t y = 0; y < picture.height; y++) {
    std::memcpy(&result.pixels[y * result.width * 4], &picture.pixels[y * picture.width * 4],
                picture.width * size_t{4});
  }
  fill(result, {picture.width, 0, result.width - picture.width, result.height}, paper);
  if (picture.height <= 2 * margin) return result;  // no room for a bar
  const Box bar{picture.width + margin, margin, bar_width, picture.height - 2 * margin};
  fill(result, {bar.left - 1, bar.top - 1, bar.width + 2, bar.height + 2}, ink);
  for (uint32_t y = 0; y < bar.height; y++) {
    const double value = bar.height == 1 ? 1 : 1 - static_cast<double>(y) / (bar.height - 1);
    fill(result, {bar.left, bar.top + y, bar.width, 1}, color_of(map, value));
  }
  // The middle one and the low one only where they don't run into each other.
  write(result, text_left, bar.top, scale, labels[0]);
  if (bar.height >= 4 * text_height) {
    write(result, text_left, bar.top + bar.height / 2 - text_height / 2, scale, labels[1]);
  }
  if (bar.height >= 2 * text_height + scale) {
    write(result, text_left, bar.top + bar.height - text_height, scale, labels[2]);
  }
  return result;
}

}  // namespace vitrine
