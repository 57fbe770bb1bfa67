// The kernel of attention_gradient for few tokens and narrow heads, on devices that are a CPU
// (shaders/attention/cpu/attention_gradient_cpu_whole.comp).
#include <vulkan/vulkan_core.h>

#include <algorithm>

#include "runtime/ops/attention/attention_gradient_kernels.h"
#include "runtime/ops/attention/relative_bias.h"
#include "runtime/ops/lowering.h"

namespace vitrine {
namespace {

// Elements of keys, values and both gradients that a lane keeps in all turns. With more of them, or wider
// heads, they leave the nearest cache, and computing the weights once is no gain.
constexpr uint64_t most_kept = 800, widest = 16;
// Elements of queries, or of their results, that a step's code has room for in all turns.
constexpr uint64_t most_unrolled = 256;
// Four lanes draw random numbers together; of wider subgroups, most lanes would have no key.
constexpr uint32_t fewest_lanes = 4, most_lanes = 16;

uint64_t turns_of(const LowerContext& context) {
  return ceil_div(attention_sizes(context).keys, context.device().subgroup_size);
}

struct Step {
  uint32_t queries;
  std::string name() const { return std::to_string(queries) + "queries"; }
};

std::vector<Step> steps_for(const LowerContext& context) {
  const AttentionSizes sizes = attention_sizes(context);
  std::vector<Step> steps;
  for (const uint32_t queries : {4, 2, 1}) {
    const uint64_t unrolled = queries * turns_of(context) * std::max(sizes.key_width, sizes.value_width);
    if (queries == 1 || unrolled <= most_unrolled) steps.push_back({queries});
  }
  return steps;
}

// Whether the kernel may read keys and values, and write their gradients, as 64-bit words.
bool keys_lie_in_words(const LowerContext& context) {
  const AttentionSizes sizes = attention_sizes(context);
  const auto outputs = attention_gradient_outputs(context.attributes());
  uint64_t all = sizes.key_width | sizes.value_width;
  for (const uint32_t i : {attention_input::k, attention_input::v}) {
    const AttentionRows rows = attention_rows_of(context, i);
    all |= rows.stride | rows.offset;
    if (refuse_half_word(context.input(i)) || refuse_half_word(context.output(outputs.at(i)))) return false;
  }
  return all % 2 == 0;
}

}  // namespace

std::optional<std::string> refuse_attention_gradient_whole(const LowerContext& context) {
  const std::string variant = shared_rows_variant(context.device(), "f32");
  if (auto reason = refuse(context, "attention_gradient_cpu_whole", variant)) return reason;
  if (auto reason = refuse(context, "zeros", "f32")) return reason;
  const Capabilities& device = context.device();
  if (device.subgroup_size < fewest_lanes || device.subgroup_size > most_lanes) {
    return "subgroups have " + std::to_string(device.subgroup_size) + " lanes, " +
           std::to_string(fewest_lanes) + " to " + std::to_string(most_lanes) + " are possible";
  }
  if ((device.subgroup_operations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) == 0) {
    return "the device's subgroups don't shuffle";
  }
  const AttentionSizes sizes = attention_sizes(context);
  const uint64_t width = std::max(sizes.key_width, sizes.value_width);
  if (width > widest) {
    return "heads are " + std::to_string(width) + " wide, at most " + std::to_string(widest) + " is possible";
  }
  const uint64_t kept = 2 * turns_of(context) * (sizes.key_width + sizes.value_width);
  if (kept > most_kept) {
    return std::to_string(sizes.keys) + " keys and values of " + std::to_string(sizes.key_width) + " and " +
           std::to_string(sizes.value_width) + " are too many for one subgroup";
  }
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    if (!context.has_input(i)) continue;
    if (context.input(i).shape.elements() > UINT32_MAX / 4) return "a tensor is too large for 32-bit indices";
  }
  const auto& groups = device.max_workgroup_count;
  if (sizes.heads > groups[0] || sizes.batch > groups[1]) return "there are too many heads or images";
  return std::nullopt;
}

// A workgroup runs on one core: with few heads, other kernels keep more of them busy.
double prefer_attention_gradient_whole(const LowerContext& context) {
  constexpr uint64_t wanted_groups = 16;
  const AttentionSizes sizes = attention_sizes(context);
  return prefer_on_cpu(context) * (sizes.batch * sizes.heads >= wanted_groups ? 2 : 0.5);
}

Lowered lower_attention_gradient_whole(const LowerContext& context) {
  using namespace attention_gradient_input;
  const AttentionSizes sizes = attention_sizes(context);
  const uint32_t queries_a_step = configured(context, steps_for(context)).queries;
  const uint32_t lanes = context.device().subgroup_size;
  const AttentionRows q = attention_rows_of(context, attention_input::q);
  const AttentionRows k = attention_rows_of(context, attention_input::k);
  const AttentionRows v = attention_rows_of(context, attention_input::v);
  const uint32_t result_stride = to_u32(context.input(out).shape[2]);
  const auto outputs = attention_gradient_outputs(context.attributes());
  const bool drops = drops_weights(context.attributes());

  Lowered lowered;
  clear_unread_columns(context, lowered);
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader =
      &find_shader("attention_gradient_cpu_whole", shared_rows_variant(context.device(), "f32"));
  dispatch.constants = {
      {"local_size", lanes},
      {"lanes", lanes},
      {"key_width", to_u32(sizes.key_width)},
      {"value_width", to_u32(sizes.value_width)},
      {"block", queries_a_step},
      {"turns", to_u32(turns_of(context))},
      {"q_stride", q.stride},
      {"k_stride", k.stride},
      {"v_stride", v.stride},
      {"result_stride", result_stride},
      {"drop", drops},
      {"pairs", keys_lie_in_words(context)},
      {"wide", lies_in_words(context, attention_input::q, q, sizes.key_width) &&
                   lies_in_words(context, out, {result_stride, 0}, sizes.value_width) &&
                   lies_in_words(context, out_gradient, {result_stride, 0}, sizes.value_width)}};
  dispatch.add_constants({{"bias_table", has_relative_bias(context.attributes())}});
  add_relative_grid(context, dispatch);
  dispatch.subgroup_size = lanes;
  dispatch.operands = {Operand::input(attention_input::q),
                       Operand::input(attention_input::k),
                       Operand::input(attention_input::v),
                       Operand::input(out),
                       Operand::input(lse),
                       Operand::input(out_gradient),
                       drops ? Operand::input(step) : Operand::nothing(),
                       relative_bias_operand(context, bias),
                       Operand::output(outputs[attention_input::q]),
                       Operand::output(outputs[attention_input::k]),
                       Operand::output(outputs[attention_input::v])};
  dispatch.set_params(attention_gradient_lanes_params(context));
  dispatch.groups = {to_u32(sizes.heads), to_u32(sizes.batch), 1};
  dispatch.note = std::to_string(queries_a_step) + " queries a step";
  // A step of queries past the last one, and the last elements that are loaded together where a row's width
  // is no multiple.
  lowered.overread_bytes =
      (uint64_t{queries_a_step} * std::max(q.stride, result_stride) + 2 * lanes) * sizeof(float);
  return lowered;
}

std::vector<std::string> attention_gradient_whole_configurations(const LowerContext& context) {
  return names_of(steps_for(context));
}

}  // namespace vitrine
