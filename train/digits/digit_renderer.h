// Pictures of digits or letters as people might write or print them: what a font has, deformed, with uneven
// ink and noise.
#pragma once

#include <cstdint>
#include <span>

#include "train/digits/digit_fonts.h"

namespace vitrine {

// Draws picture `index` of a set: white on black. Which digit (or character of DigitFace::drawn()), which
// face and what is done to it is a function of seed, set, index and the faces. Returns the number of the
// digit or character.
class DigitRenderer {
 public:
  // The groups must outlive the renderer. One a thread.
  // `distortion` is DigitSet's.
  DigitRenderer(std::span<const FaceGroup> groups, uint32_t size, uint64_t seed, uint32_t set,
                double distortion = 1)
      : groups_(groups), size_(size), seed_(seed), set_(set), distortion_(distortion) {}

  // [size, size].
  uint32_t draw(uint64_t index, std::span<uint8_t> picture) { return draw(index, size_, size_, picture); }
  // [height, width]: what is drawn lies in the middle square, and the paper goes on beside it.
  uint32_t draw(uint64_t index, uint32_t width, uint32_t height, std::span<uint8_t> picture);

 private:
  std::span<const FaceGroup> groups_;
  uint32_t size_;
  uint64_t seed_;
  uint32_t set_;
  double distortion_;
  Rasterizer rasterizer_;
};

}  // namespace vitrine
