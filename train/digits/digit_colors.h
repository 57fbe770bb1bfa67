// Colors for pictures of digits: a paper that changes from one corner to the other, and an ink.
#pragma once

#include <cstdint>
#include <span>

namespace vitrine {

// Makes [size, size] of white on black into [3, size, size]: all red, then all green, then all blue. In every
// channel the ink is brighter than the paper by a fifth at least, so that no digit fades. The colors are a
// function of seed, set, index and `distortion` (DigitSet's; at 0 they are white and black).
void color_digit(std::span<const uint8_t> picture, uint32_t size, uint64_t seed, uint32_t set, uint64_t index,
                 double distortion, std::span<uint8_t> colored);

}  // namespace vitrine
