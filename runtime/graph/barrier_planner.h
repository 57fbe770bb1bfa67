// Decides where memory barriers are needed: it keeps the byte ranges that were read and written since
// the last barrier, and an overlap that makes a hazard asks for one global barrier. Tensors that share
// memory need no special case.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vitrine {

struct RangeUse {
  uint64_t space = 0;  // which buffer: ranges in different spaces never overlap
  uint64_t begin = 0, end = 0;
  bool reads = false, writes = false;
};

class BarrierPlanner {
 public:
  // Call once a step, in order. True: a barrier has to come before this step.
  bool step(std::span<const RangeUse> uses);

 private:
  bool hazard(const RangeUse& use) const;
  std::vector<RangeUse> pending_;
};

}  // namespace vitrine
