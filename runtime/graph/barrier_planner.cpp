#include "runtime/graph/barrier_planner.h"

#include <algorithm>

namespace vitrine {

bool BarrierPlanner::hazard(const RangeUse& use) const {
  return std::any_of(pending_.begin(), pending_.end(), [&](const RangeUse& earlier) {
    const bool overlap = earlier.space == use.space && earlier.begin < use.end && use.begin < earlier.end;
    // Two reads never hurt; read after write, write after read and write after write do.
    return overlap && (earlier.writes || use.writes);
  });
}

bool BarrierPlanner::step(std::span<const RangeUse> uses) {
  const bool needed = std::any_of(uses.begin(), uses.end(), [&](const RangeUse& use) { return hazard(use); });
  if (needed) pending_.clear();
  pending_.insert(pending_.end(), uses.begin(), uses.end());
  return needed;
}

}  // namespace vitrine
