#include <algorithm>
#include <cmath>
#include <string>

#include "images/color_map.h"
#include "images/small_text.h"
#include "runtime/util/error.h"
#include "train/logs/confusion.h"

namespace vitrine {
namespace {

constexpr Rgb paper{255, 255, 255}, ink{32, 32, 32}, line{208, 208, 208};
constexpr uint32_t most_pixels_a_side = 16'384;

// White to dark blue, lightness falling evenly; what is nothing is the paper.
Rgb shade(double share) {
  const auto mix = [&](double from, double to) {
    return static_cast<uint8_t>(std::lround(from + (to - from) * share));
  };
  return {mix(247, 8), mix(251, 48), mix(255, 107)};
}

uint32_t width_of(const std::string& text, uint32_t scale) {
  return small_letters(text) * small_letter_advance * scale;
}

// As much of a name as has room. What is left out is shown by two dots.
std::string shortened(const std::string& name, uint32_t letters) {
  if (small_letters(name) <= letters) return name;
  std::string text;
  for (const char byte : name) {
    if (small_letters(text + byte) > letters - 2) break;
    text += byte;
  }
  return text + "..";
}

struct Layout {
  uint32_t cell, scale, left, top, title;  // pixels; where the matrix begins
  uint64_t every;                          // of so many classes one is named
  bool numbers;
};

Layout layout_of(const Confusion& confusion) {
  constexpr uint32_t longest_name = 24, wanted_side = 1600;
  const uint64_t classes = confusion.classes();
  Layout layout{.scale = 2};
  uint64_t most = 0;
  uint32_t letters = 0;
  for (uint64_t c = 0; c < classes; ++c) {
    letters = std::max(letters, std::min(small_letters(confusion.name(c)), longest_name));
    for (uint64_t p = 0; classes <= 64 && p < classes; ++p) most = std::max(most, confusion.count(c, p));
  }
  const uint32_t of_number = width_of(std::to_string(most), layout.scale) + 6;
  layout.cell = std::max(28u, of_number);
  layout.numbers = classes <= 64 && layout.cell * classes <= 2 * wanted_side;
  if (!layout.numbers) {
    layout.cell = static_cast<uint32_t>(std::clamp<uint64_t>(wanted_side / classes, 1, 24));
  }
  const uint32_t of_name = small_letter_height * layout.scale + 4;
  layout.every = (of_name + layout.cell - 1) / layout.cell;
  layout.title = small_letter_height * layout.scale + 12;
  layout.left = layout.top = layout.title + letters * small_letter_advance * layout.scale + 8;
  return layout;
}

}  // namespace

Image picture_of(const Confusion& confusion) {
  const uint64_t classes = confusion.classes();
  const Layout at = layout_of(confusion);
  constexpr uint32_t margin = 12, longest_name = 24;
  const uint64_t side = classes * at.cell;
  if (side + at.left + margin > most_pixels_a_side) {
    throw Error(ErrorCode::usage, "a picture of " + std::to_string(classes) +
                                      " classes was asked for, expected fewer; a .csv has room for them");
  }
  // Wide enough for what stands over it.
  const std::string across = "predicted", down = "label";
  const auto size = static_cast<uint32_t>(std::max<uint64_t>(side, width_of(across, at.scale)));
  Image image{.width = at.left + size + margin, .height = at.top + size + margin};
  image.pixels.assign(image.pixel_count() * 4, 255);
  fill_box(image, {0, 0, image.width, image.height}, paper);
  write_small(image, at.left, 6, at.scale, across, ink);
  write_small(image, 6, at.top + width_of(down, at.scale), at.scale, down, ink, true);

  const uint32_t text_height = small_letter_height * at.scale;
  const uint32_t middle = at.cell > text_height ? (at.cell - text_height) / 2 : 0;
  for (uint64_t c = 0; c < classes; c += at.every) {
    const std::string name = shortened(confusion.name(c), longest_name);
    const auto offset = static_cast<uint32_t>(c * at.cell) + middle;
    write_small(image, at.left - 6 - width_of(name, at.scale), at.top + offset, at.scale, name, ink);
    write_small(image, at.left + offset, at.top - 6, at.scale, name, ink, true);
  }
  const auto whole = static_cast<uint32_t>(side);
  fill_box(image, {at.left - 1, at.top - 1, whole + 2, whole + 2}, line);
  for (uint64_t label = 0; label < classes; ++label) {
    uint64_t most = 0;
    for (uint64_t p = 0; p < classes; ++p) most = std::max(most, confusion.count(label, p));
    for (uint64_t p = 0; p < classes; ++p) {
      const uint64_t count = confusion.count(label, p);
      const double share = most == 0 ? 0 : static_cast<double>(count) / static_cast<double>(most);
      const uint32_t left = at.left + static_cast<uint32_t>(p * at.cell);
      const uint32_t top = at.top + static_cast<uint32_t>(label * at.cell);
      const uint32_t gap = at.cell >= 8 ? 1 : 0;
      fill_box(image, {left, top, at.cell - gap, at.cell - gap}, count == 0 ? paper : shade(share));
      if (!at.numbers || count == 0) continue;
      const std::string text = std::to_string(count);
      const uint32_t width = width_of(text, at.scale) - at.scale;
      write_small(image, left + (at.cell - width) / 2, top + middle, at.scale, text,
                  share > 0.5 ? paper : ink);
    }
  }
  return image;
}

}  // namespace vitrine
