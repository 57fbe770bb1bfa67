// Colors for pictures of digits: a paper that changes from one corner to the other, and an ink.
#pragma once

#include <cstdint>
#include <span>

namespace vitrine {

struct DigitColoring {
  uint64_t seed = 0;
  uint32_t set = 0;       // 0: for training, 1: for tests
  double distortion = 1;  // DigitSet's; at 0 the ink is white and paper that isn't tinted is black
  bool tinted = false;    // each digit has a paper of its own, give or take a little
};

// Makes picture `index`, [size, size] of white on black, into [3, size, size]: all red, then all green, then
// all blue. In every channel the ink is brighter than the paper by a tenth at least, so that no digit fades.
// The colors are a function of the arguments.
void color_digit(std::span<const uint8_t> picture, uint32_t size, uint64_t index, uint32_t digit,
                 const DigitColoring& coloring, std::span<uint8_t> colored);

}  // namespace vitrine
