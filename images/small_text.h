// Letters of five by seven dots, for pictures that numbers and names stand in.
#pragma once

#include <cstdint>
#include <string_view>

#include "images/color_map.h"
#include "images/image.h"

namespace vitrine {

inline constexpr uint32_t small_letter_width = 5, small_letter_height = 7, small_letter_advance = 6;

struct PixelBox {
  uint32_t left, top, width, height;
};
// What of it lies in the picture.
void fill_box(Image& image, const PixelBox& box, const Rgb& color);

// How many letters a text has: what isn't ASCII is an empty box each.
uint32_t small_letters(std::string_view text);

// Each dot is a square of `scale` pixels. Upwards, the text begins at the bottom, `top` being where.
void write_small(Image& image, uint32_t left, uint32_t top, uint32_t scale, std::string_view text,
                 const Rgb& ink, bool upwards = false);

}  // namespace vitrine
