// The kernel of attention_gradient for devices that are a CPU
// (shaders/attention/attention_gradient_lanes_*.comp).
#include <algorithm>

#include "runtime/ops/attention/attention_gradient_kernels.h"
#include "runtime/ops/attention/relative_bias.h"
#include "runtime/ops/lowering.h"

namespace vitrine {
namespace {

// A step does about twice as much with each element as attention_cpu_lanes.cpp's.
constexpr uint64_t most_unrolled = 256;

std::vector<AttentionStep> steps_for(const LowerContext& context) {
  return attention_steps_for(context, most_unrolled, "rows");
}

}  // namespace

shader::AttentionGradientLanesParams attention_gradient_lanes_params(const LowerContext& context) {
  const AttentionSizes sizes = attention_sizes(context);
  const AttentionDrops drops = attention_drops(context.attributes());
  return {.queries = to_u32(sizes.queries),
          .keys = to_u32(sizes.keys),
          .heads = to_u32(sizes.heads),
          .q_offset = attention_rows_of(context, attention_input::q).offset,
          .k_offset = attention_rows_of(context, attention_input::k).offset,
          .v_offset = attention_rows_of(context, attention_input::v).offset,
          .scale = static_cast<float>(context.attributes().number("scale")),
          .drop_stream = drops.stream,
          .drop_threshold = drops.threshold,
          .drop_factor = drops.factor};
}

std::optional<std::string> refuse_attention_gradient_lanes(const LowerContext& context) {
  const std::string variant = shared_rows_variant(context.device(), "f32");
  for (const char* shader : {"attention_gradient_cpu_lanes_queries", "attention_gradient_cpu_lanes_keys"}) {
    if (auto reason = refuse(context, shader, variant)) return reason;
  }
  if (auto reason = refuse(context, "zeros", "f32")) return reason;
  const AttentionSizes sizes = attention_sizes(context);
  if (std::max(sizes.key_width, sizes.value_width) > 256) return "its heads are wider than 256";
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    if (!context.has_input(i)) continue;
    if (context.input(i).shape.elements() > UINT32_MAX / 4) return "a tensor is too large for 32-bit indices";
  }
  const auto& groups = context.device().max_workgroup_count;
  if (sizes.heads > groups[1] || sizes.batch > groups[2]) return "there are too many heads or images";
  return std::nullopt;
}

Lowered lower_attention_gradient_lanes(const LowerContext& context) {
  using namespace attention_gradient_input;
  const AttentionSizes sizes = attention_sizes(context);
  const uint32_t rows_a_step = configured(context, steps_for(context)).tokens;
  const uint32_t lanes = lanes_workgroup_size(context.device());
  const AttentionRows q = attention_rows_of(context, attention_input::q);
  const AttentionRows k = attention_rows_of(context, attention_input::k);
  const AttentionRows v = attention_rows_of(context, attention_input::v);
  const uint32_t result_stride = to_u32(context.input(out).shape[2]);
  const auto outputs = attention_gradient_outputs(context.attributes());

  Lowered lowered;
  clear_unread_columns(context, lowered);
  lowered.scratch.push_back(sizes.batch * sizes.heads * sizes.queries * sizeof(float));
  const Operand deltas = Operand::scratch(0);
  const bool drops = drops_weights(context.attributes());
  const Operand drawn = drops ? Operand::input(step) : Operand::nothing();
  const Operand biases = relative_bias_operand(context, bias);
  const auto input = [](uint32_t i) { return Operand::input(i); };
  const auto run = [&](const char* shader, uint64_t rows, std::vector<Operand> operands) -> Dispatch& {
    Dispatch& dispatch = lowered.dispatches.emplace_back();
    dispatch.shader = &find_shader(shader, shared_rows_variant(context.device(), "f32"));
    dispatch.subgroup_size = shared_rows_subgroup(context.device());
    dispatch.constants = {{"local_size", lanes},
                          {"key_width", to_u32(sizes.key_width)},
                          {"value_width", to_u32(sizes.value_width)},
                          {"block", rows_a_step},
                          {"q_stride", q.stride},
                          {"k_stride", k.stride},
                          {"v_stride", v.stride},
                          {"drop", drops}};
    dispatch.add_constants({{"bias_table", has_relative_bias(context.attributes())}});
    add_relative_grid(context, dispatch);
    dispatch.operands = std::move(operands);
    dispatch.set_params(attention_gradient_lanes_params(context));
    dispatch.groups = {to_u32(ceil_div(rows, lanes)), to_u32(sizes.heads), to_u32(sizes.batch)};
    return dispatch;
  };
  Dispatch& queries = run(
      "attention_gradient_cpu_lanes_queries", sizes.queries,
      {input(attention_input::q), input(attention_input::k), input(attention_input::v), input(out),
       input(lse), input(out_gradient), drawn, biases, Operand::output(outputs[attention_input::q]), deltas});
  queries.add_constants({{"wide", lies_in_words(context, attention_input::k, k, sizes.key_width) &&
                                      lies_in_words(context, attention_input::v, v, sizes.value_width)}});
  queries.note = std::to_string(rows_a_step) + " keys a step";
  Dispatch& keys =
      run("attention_gradient_cpu_lanes_keys", sizes.keys,
          {input(attention_input::q), input(attention_input::k), input(attention_input::v), input(lse),
           input(out_gradient), deltas, drawn, biases, Operand::output(outputs[attention_input::k]),
           Operand::output(outputs[attention_input::v])});
  keys.add_constants(
      {{"result_stride", result_stride},
       {"wide", lies_in_words(context, attention_input::q, q, sizes.key_width) &&
                    lies_in_words(context, out_gradient, {result_stride, 0}, sizes.value_width)}});
  keys.note = std::to_string(rows_a_step) + " queries a step";
  // A step of rows past the last one, and the last elements that are loaded together where a row's width is
  // no multiple.
  const uint32_t widest = std::max({q.stride, k.stride, v.stride, result_stride});
  lowered.overread_bytes = (uint64_t{rows_a_step} * widest + 2 * lanes) * sizeof(float);
  return lowered;
}

std::vector<std::string> attention_gradient_lanes_configurations(const LowerContext& context) {
  return names_of(steps_for(context));
}

}  // namespace vitrine
