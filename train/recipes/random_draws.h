// Random numbers that are drawn one after the other, as functions of where they begin.
#pragma once

#include <cstdint>

#include "train/data/random_streams.h"

namespace vitrine {

// Uniform numbers of (0, 1) from a stream: as many as are asked for, beginning at a place of one's own.
// Places are 2^14 numbers apart, far more than anybody draws.
class UniformDraws {
 public:
  UniformDraws(const RandomStream& stream, uint64_t place) : stream_(stream), next_(place << 14) {}

  double next() {
    const uint64_t at = next_++;
    return uniform_from(stream_.block(at / 4)[at % 4]);
  }
  // A whole number from `first` to `last`.
  int64_t whole(int64_t first, int64_t last) {
    return first + static_cast<int64_t>(next() * static_cast<double>(last - first + 1));
  }
  double between(double low, double high) { return low + (high - low) * next(); }

 private:
  RandomStream stream_;
  uint64_t next_;
};

// The logarithm of a number of the gamma distribution of this shape (and scale 1), by the method of Marsaglia
// and Tsang ("A simple method for generating gamma variables", 2000): each try takes two draws, and a shape
// below 1 one more, before. Its bits don't depend on the math library.
double log_gamma_draw(double shape, UniformDraws& draws);

// A number of the beta distribution of equal shapes: X / (X + Y) of two gamma draws. 0 to 1, both included
// where the shape is so small that rounding gives them.
double beta_draw(double shape, UniformDraws& draws);

}  // namespace vitrine
