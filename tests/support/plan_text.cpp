#include "tests/support/plan_text.h"

#include <algorithm>

namespace vitrine::test {
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
  for (const NamedConstant& constant : dispatch.constants) {
    text +=
        (text.ends_with('<') ? "" : ",") + std::string(constant.name) + "=" + std::to_string(constant.value);
  }
  text += "> groups " + std::to_string(dispatch.groups[0]) + "x" + std::to_string(dispatch.groups[1]) + "x" +
          std::to_string(dispatch.groups[2]);
  if (dispatch.subgroup_size) text += " subgroup " + std::to_string(dispatch.subgroup_size);
  if (!dispatch.note.empty()) text += " (" + dispatch.note + ")";
  return text + " params " + hex(dispatch.params);
}

}  // namespace

std::string text_of(const Plan& plan) {
  std::string text = "device " + plan.device.name + "\nfused: " + fusion_summary(plan) + "\n";
  for (const std::string& change : plan.fusion_changes) text += "  " + change + "\n";
  for (size_t i = 0; i < plan.constants.size(); ++i) {
    const PlannedConstant& constant = plan.constants[i];
    text += "const" + std::to_string(i) + " " + plan.graph->value(constant.value).name + " " +
            std::to_string(constant.bytes) + " bytes";
    if (constant.pack) text += " as " + constant.layout + " by " + describe(*constant.pack);
    text += "\n";
  }
  uint32_t node = ~0u;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.node != node) {
      node = step.node;
      text += std::string(plan.graph->nodes()[node].op->name) + " " + plan.graph->nodes()[node].name;
      for (const std::string_view part : fused_parts(plan.graph->nodes()[node]))
        text += " +" + std::string(part);
      text += ": " + plan.choices[node] + "\n";
    }
    text += (step.barrier_before ? " | " : "   ") + std::to_string(i) + " slice " +
            std::to_string(step.slice) +
            (step.parts.empty() ? "" : " to " + std::to_string(step.slice + step.parts.size() - 1)) + " " +
            describe(step.dispatch) + " :";
    for (size_t k = 0; k < step.ranges.size(); ++k) {
      text += std::string(" ") + step.access[k] + " " + describe(step.ranges[k]);
    }
    text += "\n";
  }
  return text + memory_summary(plan);
}

}  // namespace vitrine::test
