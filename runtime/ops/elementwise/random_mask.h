// Which elements dropout keeps: a pure function of seed, step, stream and place, so that a mask is never
// stored. shaders/lib/philox.glsl makes the same decisions, bit for bit.
#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/util/philox.h"

namespace vitrine {

// A draw is dropped when its random word is below this; for rates of [0, 1) that it can tell from 1.
constexpr double largest_drop_rate = 1 - 0x1p-32;
inline uint32_t drop_threshold(double rate) { return static_cast<uint32_t>(std::llround(rate * 0x1p32)); }

// What is kept is multiplied by this, so that the mean stays.
inline float kept_factor(double rate) { return static_cast<float>(1 / (1 - rate)); }

struct RandomMask {
  uint64_t seed = 0;
  uint32_t step = 0, stream = 0;
  double rate = 0;

  // Draws are numbered within rows; what has no rows is row 0.
  bool keeps(uint32_t draw, uint32_t row = 0) const {
    const Philox::Key key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
    return Philox::block({draw / 4, row, stream, step}, key)[draw % 4] >= drop_threshold(rate);
  }
  double factor(uint32_t draw, uint32_t row = 0) const {
    return keeps(draw, row) ? static_cast<double>(kept_factor(rate)) : 0.0;
  }
};

}  // namespace vitrine
