// What a plan comes to, in a few lines of text.
#include <algorithm>
#include <cstdio>

#include "runtime/graph/plan.h"

namespace vitrine {

std::string fusion_summary(const Plan& plan) {
  std::string text, off;
  for (const std::string_view name : fusion_names()) {
    const auto count = std::ranges::count_if(plan.graph->nodes(), [&](const Node& node) {
      const auto parts = fused_parts(node);
      return std::ranges::find(parts, name) != parts.end();
    });
    if (count) text += (text.empty() ? "" : ", ") + std::string(name) + " " + std::to_string(count);
    if (!plan.options.fusions.contains(name)) off += (off.empty() ? "" : ", ") + std::string(name);
  }
  if (text.empty()) text = "nothing";
  if (!off.empty()) text += "; off: " + off;
  if (!plan.laid_out.empty())
    text += "; laid out as their readers like it: " + std::to_string(plan.laid_out.size());
  return text;
}

std::string memory_summary(const Plan& plan) {
  const auto mib = [](uint64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f MiB", static_cast<double>(bytes) / (1 << 20));
    return std::string(text);
  };
  const auto barriers =
      std::count_if(plan.steps.begin(), plan.steps.end(), [](const Step& s) { return s.barrier_before; });
  char ratio[16];
  std::snprintf(ratio, sizeof ratio, "%.3f",
                plan.largest_live_set
                    ? static_cast<double>(plan.arena_bytes()) / static_cast<double>(plan.largest_live_set)
                    : 1.0);
  return std::to_string(plan.steps.size()) + " dispatches, " + std::to_string(barriers) + " barriers, " +
         std::to_string(plan.slice_count) + " submissions\n" + "activations " + mib(plan.arena_bytes()) +
         " in " + std::to_string(plan.slab_bytes.size()) + " slabs, largest live set " +
         mib(plan.largest_live_set) + ", ratio " + ratio + "\n" + "constants " + mib(plan.constant_bytes()) +
         "\n";
}

}  // namespace vitrine
