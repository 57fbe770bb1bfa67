// The kernel of attention for devices that are a CPU (shaders/attention_lanes.comp).
#include "shaders/attention_lanes.h"

#include <algorithm>

#include "runtime/ops/attention_kernels.h"
#include "runtime/ops/lowering.h"

namespace vitrine {
namespace {

std::string lanes_variant(const LowerContext& context) {
  return std::string(name_of(context.output(0).dtype));
}

// Everything is unrolled over widths and keys: wide heads take fewer keys a step, so that the code of a
// step stays within what compiles in reasonable time.
uint32_t keys_a_step(const AttentionSizes& sizes) {
  const uint64_t width = std::max(sizes.key_width, sizes.value_width);
  return width <= 96 ? 8 : width <= 160 ? 4 : 2;
}

}  // namespace

std::optional<std::string> refuse_attention_lanes(const LowerContext& context) {
  if (auto reason = context.missing("attention_lanes", lanes_variant(context))) return reason;
  const AttentionSizes sizes = attention_sizes(context);
  if (std::max(sizes.key_width, sizes.value_width) > 256) return "its heads are wider than 256";
  for (uint32_t i = attention_input::q; i <= attention_input::v; ++i) {
    if (context.input(i).shape.elements() > UINT32_MAX / 4) return "a tensor is too large for 32-bit indices";
  }
  const auto& groups = context.device().max_workgroup_count;
  if (sizes.heads > groups[1] || sizes.batch > groups[2]) return "there are too many heads or images";
  return std::nullopt;
}

// A GPU could not hold a query and an output in one invocation's registers.
double prefer_attention_lanes(const LowerContext& context) {
  return context.device().type == DeviceType::cpu ? 3 : -1;
}

Lowered lower_attention_lanes(const LowerContext& context) {
  const AttentionSizes sizes = attention_sizes(context);
  const auto row_length = [&](uint32_t input) { return to_u32(context.input(input).shape[2]); };
  const auto offset = [&](const char* name) {
    return to_u32(static_cast<uint64_t>(context.attributes().integer(name)));
  };
  const bool store_lse = context.attributes().flag("store_lse");
  // A workgroup of one subgroup: with more lanes, fewer token counts would fill the last one.
  const uint32_t lanes = workgroup_size(context.device(), std::max(context.device().subgroup_size, 1u));

  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("attention_lanes", lanes_variant(context));
  dispatch.constants = {lanes,
                        to_u32(sizes.key_width),
                        to_u32(sizes.value_width),
                        to_u32(sizes.keys),
                        keys_a_step(sizes),
                        row_length(attention_input::q),
                        row_length(attention_input::k),
                        row_length(attention_input::v),
                        store_lse};
  dispatch.operands = {Operand::input(attention_input::q), Operand::input(attention_input::k),
                       Operand::input(attention_input::v), Operand::output(0),
                       store_lse ? Operand::output(1) : Operand::nothing()};
  dispatch.set_params(
      shader::AttentionLanesParams{.queries = to_u32(sizes.queries),
                                   .heads = to_u32(sizes.heads),
                                   .q_offset = offset("q_offset"),
                                   .k_offset = offset("k_offset"),
                                   .v_offset = offset("v_offset"),
                                   .scale = static_cast<float>(context.attributes().number("scale"))});
  dispatch.groups = {to_u32(ceil_div(sizes.queries, lanes)), to_u32(sizes.heads), to_u32(sizes.batch)};
  dispatch.note = std::to_string(keys_a_step(sizes)) + " keys a step";
  // One step of keys past the last one.
  lowered.overread_bytes = keys_a_step(sizes) *
                           std::max(row_length(attention_input::k), row_length(attention_input::v)) *
                           size_of(context.input(attention_input::k).dtype);
  return lowered;
}

}  // namespace vitrine
