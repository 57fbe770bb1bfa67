#include "runtime/graph/memory_planner.h"

#include <algorithm>
#include <numeric>

namespace vitrine {
namespace {

struct Placed {
  uint64_t begin, end;
  uint32_t first, last;
};

bool overlap_in_time(const Lifetime& a, const Placed& b, bool reuse) {
  return !reuse || (a.first <= b.last && b.first <= a.last);
}

// The tightest gap of a slab that is free for the whole life of `tensor`: {offset, wasted bytes}. The
// space after the last neighbour counts as a gap that grows the slab.
struct Gap {
  uint64_t offset;
  uint64_t growth;
  uint64_t slack;
};
Gap best_gap(const std::vector<Placed>& slab, uint64_t slab_bytes, const Lifetime& tensor, uint64_t bytes,
             bool reuse) {
  std::vector<Placed> neighbours;
  for (const Placed& placed : slab) {
    if (overlap_in_time(tensor, placed, reuse)) neighbours.push_back(placed);
  }
  std::sort(neighbours.begin(), neighbours.end(),
            [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
  Gap best{0, UINT64_MAX, UINT64_MAX};
  uint64_t free_from = 0;
  const auto consider = [&](uint64_t begin, uint64_t end, bool last) {
    if (!last && end - begin < bytes) return;
    const uint64_t growth = begin + bytes > slab_bytes ? begin + bytes - slab_bytes : 0;
    const uint64_t slack =
        last ? (slab_bytes > begin + bytes ? slab_bytes - begin - bytes : 0) : end - begin - bytes;
    if (growth < best.growth || (growth == best.growth && slack < best.slack)) best = {begin, growth, slack};
  };
  for (const Placed& neighbour : neighbours) {
    if (neighbour.begin > free_from) consider(free_from, neighbour.begin, false);
    free_from = std::max(free_from, neighbour.end);
  }
  consider(free_from, UINT64_MAX, true);
  return best;
}

uint64_t find_largest_live_set(std::span<const Lifetime> lifetimes, uint64_t alignment) {
  uint32_t steps = 0;
  for (const Lifetime& lifetime : lifetimes) steps = std::max(steps, lifetime.last + 1);
  std::vector<int64_t> change(steps + 1, 0);
  for (const Lifetime& lifetime : lifetimes) {
    const auto bytes = static_cast<int64_t>((lifetime.bytes + alignment - 1) / alignment * alignment);
    change[lifetime.first] += bytes;
    change[lifetime.last + 1] -= bytes;
  }
  int64_t live = 0, most = 0;
  for (const int64_t step : change) most = std::max(most, live += step);
  return static_cast<uint64_t>(most);
}

}  // namespace

uint64_t MemoryLayout::total_bytes() const {
  return std::accumulate(slab_bytes.begin(), slab_bytes.end(), uint64_t{0});
}

MemoryLayout plan_memory(std::span<const Lifetime> lifetimes, const MemoryRules& rules) {
  MemoryLayout layout;
  layout.placements.resize(lifetimes.size());
  layout.largest_live_set = find_largest_live_set(lifetimes, rules.alignment);

  std::vector<uint32_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (lifetimes[a].bytes != lifetimes[b].bytes) return lifetimes[a].bytes > lifetimes[b].bytes;
    return lifetimes[a].first < lifetimes[b].first;
  });

  std::vector<std::vector<Placed>> slabs;
  for (const uint32_t index : order) {
    const Lifetime& tensor = lifetimes[index];
    const uint64_t bytes = (tensor.bytes + rules.alignment - 1) / rules.alignment * rules.alignment;
    size_t chosen = slabs.size();
    Gap gap{0, UINT64_MAX, UINT64_MAX};
    for (size_t slab = 0; slab < slabs.size(); ++slab) {
      const Gap found = best_gap(slabs[slab], layout.slab_bytes[slab], tensor, bytes, rules.reuse);
      const bool fits = layout.slab_bytes[slab] + found.growth <= rules.max_slab_bytes;
      const bool better =
          found.growth < gap.growth || (found.growth == gap.growth && found.slack < gap.slack);
      if (fits && better) {
        gap = found;
        chosen = slab;
      }
    }
    if (chosen == slabs.size()) {
      slabs.emplace_back();
      layout.slab_bytes.push_back(0);
      gap = {0, bytes, 0};
    }
    slabs[chosen].push_back({gap.offset, gap.offset + bytes, tensor.first, tensor.last});
    layout.slab_bytes[chosen] = std::max(layout.slab_bytes[chosen], gap.offset + bytes);
    layout.placements[index] = {static_cast<uint32_t>(chosen), gap.offset};
  }
  return layout;
}

}  // namespace vitrine
