// How a batch is cut into parts, each of which is a step of its own. What is cut is the same whatever number
// of devices works on the parts, so that their gradients add up to the same bits.
#pragma once

#include <algorithm>
#include <cstdint>

namespace vitrine {

struct BatchParts {
  uint64_t batch = 0;  // samples of a whole one
  uint64_t part = 0;   // of a part; the last one of a batch may be smaller
  // Whether a part takes samples from both ends of its batch, so that the i-th is in one with the i-th from
  // the end.
  bool pairs = false;

  uint64_t count(uint64_t samples) const { return (samples + part - 1) / part; }
  uint64_t count() const { return count(batch); }
  uint64_t size(uint64_t samples, uint64_t number) const { return std::min(part, samples - number * part); }
  // Where in a batch of so many samples the one lies that the parts take as their `taken`-th.
  uint64_t place(uint64_t samples, uint64_t taken) const {
    if (!pairs) return taken;
    return taken % 2 == 0 ? taken / 2 : samples - 1 - taken / 2;
  }
};

}  // namespace vitrine
