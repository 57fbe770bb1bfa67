// Places tensors in as little memory as possible: lifetimes over the final order of execution, the
// largest first, each into the tightest gap that is free for its whole life. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vitrine {

// A piece of memory that is written at step `first` and read for the last time at step `last`.
struct Lifetime {
  uint64_t bytes = 0;
  uint32_t first = 0, last = 0;
};

struct Placement {
  uint32_t slab = 0;
  uint64_t offset = 0;
};

struct MemoryLayout {
  std::vector<Placement> placements;  // one a lifetime, in the order given
  std::vector<uint64_t> slab_bytes;
  // The most bytes alive at one step: no layout can be smaller.
  uint64_t largest_live_set = 0;
  uint64_t total_bytes() const;
};

struct MemoryRules {
  uint64_t alignment = 256;              // of every offset
  uint64_t max_slab_bytes = 1ull << 30;  // a lifetime larger than this gets a slab of its own
  bool reuse = true;                     // false: nothing shares memory (for debugging)
};

MemoryLayout plan_memory(std::span<const Lifetime> lifetimes, const MemoryRules& rules);

}  // namespace vitrine
