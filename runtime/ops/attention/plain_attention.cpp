#include "runtime/ops/attention/plain_attention.h"

#include <array>

#include "runtime/ops/attention/attention_kernels.h"
#include "runtime/ops/attention/relative_bias.h"
#include "runtime/ops/lowering.h"
#include "shaders/norms/softmax.h"

namespace vitrine {
namespace {

constexpr uint32_t output_out = 0, output_scores = 1, output_weights = 2;

void infer(InferContext& c) {
  const Shape shape = infer_attention_inputs(c);
  c.require(!drops_weights(c.attributes()), "it can't drop weights, which was asked for");
  c.require(!is_attention_causal(c.attributes()), "it has no causal mask, which was asked for");
  const Shape maps{shape[0], static_cast<uint64_t>(c.attributes().integer("heads")), shape[1],
                   c.input(attention_input::k).shape[1]};
  require_relative_bias(c, attention_input::bias, maps[1], maps[2], maps[3]);
  c.output(shape, c.input(attention_input::q).dtype);
  c.output(maps, DType::f32, "scores");
  c.output(maps, DType::f32, "weights");
}

std::optional<std::string> refuses(const LowerContext& c) {
  const std::string_view variant = name_of(c.input(attention_input::q).dtype);
  if (auto reason = refuse(c, "plain_scores", variant)) return reason;
  if (auto reason = refuse(c, "softmax", "f32")) return reason;
  return refuse(c, "plain_apply", variant);
}

// A dispatch with one invocation for each element of `output`.
Dispatch elementwise(const LowerContext& c, std::string_view shader, uint32_t output) {
  const uint64_t elements = c.output(output).shape.elements();
  const uint32_t local_size = workgroup_size(c.device(), 64);
  Dispatch dispatch;
  dispatch.shader = &find_shader(shader, name_of(c.input(attention_input::q).dtype));
  dispatch.constants = {{"local_size", local_size}};
  dispatch.set_params(attention_params(c, elements));
  dispatch.groups = spread_groups(c.device(), ceil_div(elements, local_size));
  return dispatch;
}

Lowered lower(const LowerContext& c) {
  Dispatch scores = elementwise(c, "plain_scores", output_scores);
  add_relative_bias(c, scores);
  scores.operands = {Operand::input(attention_input::q), Operand::input(attention_input::k),
                     relative_bias_operand(c, attention_input::bias), Operand::output(output_scores)};
  scores.note = "scores";

  const Shape& maps = c.output(output_scores).shape;
  Dispatch weights;
  weights.shader = &find_shader("softmax", "f32");
  weights.constants = {{"local_size", row_workgroup_size(c.device(), maps[-1])}};
  weights.operands = {Operand::output(output_scores), Operand::output(output_weights)};
  weights.set_params(shader::SoftmaxParams{.rows = to_u32(maps.rows()), .width = to_u32(maps[-1])});
  weights.groups = spread_groups(c.device(), maps.rows());
  weights.note = "softmax";

  Dispatch apply = elementwise(c, "plain_apply", output_out);
  apply.operands = {Operand::output(output_weights), Operand::input(attention_input::v),
                    Operand::output(output_out)};
  apply.note = "apply";

  Lowered lowered;
  lowered.dispatches = {std::move(scores), std::move(weights), std::move(apply)};
  return lowered;
}

constexpr std::array kernels{KernelDef{"steps", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_plain_attention{"plain_attention", infer, attention_flops, kernels, plain_attention_cases};

PlainAttentionResult plain_attention(Graph& graph, std::string name, ValueId q, ValueId k, ValueId v,
                                     const AttentionOptions& options) {
  std::vector<ValueId> inputs{q, k, v};
  Attributes attributes = attention_attributes(options);
  push_attention_extras(attributes, options.step, relative_bias_of(options), inputs);
  const auto outputs =
      graph.add(op_plain_attention, std::move(name), std::move(inputs), std::move(attributes));
  return {.out = outputs[output_out], .scores = outputs[output_scores], .weights = outputs[output_weights]};
}

}  // namespace vitrine
