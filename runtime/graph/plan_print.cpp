// A Plan as text, for `vitrine inspect` and for comparing plans.
#include <algorithm>
#include <cstdio>

#include "runtime/graph/plan.h"

namespace vitrine {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += digits[static_cast<unsigned>(b) >> 4];
    text += digits[static_cast<unsigned>(b) & 15];
  }
  return text;
}

std::string_view name_of(MemoryRange::Space space) {
  switch (space) {
    case MemoryRange::Space::nothing:
      return "-";
    case MemoryRange::Space::arena:
      return "arena";
    case MemoryRange::Space::constant:
      return "const";
    case MemoryRange::Space::input:
      return "in";
    case MemoryRange::Space::output:
      return "out";
    case MemoryRange::Space::state:
      return "state";
  }
  return "?";
}

std::string describe(const MemoryRange& range) {
  std::string text(name_of(range.space));
  if (range.space == MemoryRange::Space::nothing) return text;
  text += std::to_string(range.index);
  if (range.space == MemoryRange::Space::arena) text += "@" + std::to_string(range.offset);
  return text + "+" + std::to_string(range.bytes);
}

std::string describe(const Dispatch& dispatch) {
  std::string text =
      std::string(dispatch.shader->shader) + "." + std::string(dispatch.shader->variant) + " <";
  for (size_t i = 0; i < dispatch.constants.size(); ++i) {
    text += (i ? "," : "") + std::to_string(dispatch.constants[i]);
  }
  text += "> groups " + std::to_string(dispatch.groups[0]) + "x" + std::to_string(dispatch.groups[1]) + "x" +
          std::to_string(dispatch.groups[2]);
  if (dispatch.subgroup_size) text += " subgroup " + std::to_string(dispatch.subgroup_size);
  if (!dispatch.note.empty()) text += " (" + dispatch.note + ")";
  return text + " params " + hex(dispatch.params);
}

}  // namespace

std::string fusion_summary(const Plan& plan) {
  std::string text, off;
  for (const std::string_view name : fusion_names()) {
    auto count = std::ranges::count_if(plan.graph->nodes(), [&](const Node& node) {
      const auto parts = fused_parts(node);
      return std::ranges::find(parts, name) != parts.end();
    });
    if (name == row_blocks_rule) count = std::ssize(plan.in_blocks);
    if (count) text += (text.empty() ? "" : ", ") + std::string(name) + " " + std::to_string(count);
    if (!plan.options.fusions.contains(name)) off += (off.empty() ? "" : ", ") + std::string(name);
  }
  if (text.empty()) text = "nothing";
  return off.empty() ? text : text + "; off: " + off;
}

std::string Plan::to_string() const {
  std::string text = "device " + device.name + "\nfused: " + fusion_summary(*this) + "\n";
  for (const std::string& change : fusion_changes) text += "  " + change + "\n";
  for (size_t i = 0; i < constants.size(); ++i) {
    const PlannedConstant& constant = constants[i];
    text += "const" + std::to_string(i) + " " + graph->value(constant.value).name + " " +
            std::to_string(constant.bytes) + " bytes";
    if (constant.pack) text += " as " + constant.layout + " by " + describe(*constant.pack);
    text += "\n";
  }
  uint32_t node = ~0u;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (step.node != node) {
      node = step.node;
      text += std::string(graph->nodes()[node].op->name) + " " + graph->nodes()[node].name;
      for (const std::string_view part : fused_parts(graph->nodes()[node])) text += " +" + std::string(part);
      text += ": " + choices[node] + "\n";
    }
    text += (step.barrier_before ? " | " : "   ") + std::to_string(i) + " slice " +
            std::to_string(step.slice) + " " + describe(step.dispatch) + " :";
    for (size_t k = 0; k < step.ranges.size(); ++k) {
      text += std::string(" ") + step.access[k] + " " + describe(step.ranges[k]);
    }
    text += "\n";
  }
  return text + memory_to_string();
}

std::string Plan::memory_to_string() const {
  const auto mib = [](uint64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f MiB", static_cast<double>(bytes) / (1 << 20));
    return std::string(text);
  };
  const auto barriers =
      std::count_if(steps.begin(), steps.end(), [](const Step& s) { return s.barrier_before; });
  char ratio[16];
  std::snprintf(
      ratio, sizeof ratio, "%.3f",
      largest_live_set ? static_cast<double>(arena_bytes()) / static_cast<double>(largest_live_set) : 1.0);
  return std::to_string(steps.size()) + " dispatches, " + std::to_string(barriers) + " barriers, " +
         std::to_string(slice_count) + " submissions\n" + "activations " + mib(arena_bytes()) + " in " +
         std::to_string(slab_bytes.size()) + " slabs, largest live set " + mib(largest_live_set) +
         ", ratio " + ratio + "\n" + "constants " + mib(constant_bytes()) + "\n";
}

}  // namespace vitrine
