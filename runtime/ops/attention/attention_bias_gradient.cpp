#include "runtime/ops/attention/attention_bias_gradient.h"

#include <utility>

#include "runtime/ops/attention/attention_gradient_kernels.h"
#include "runtime/ops/attention/relative_bias.h"
#include "runtime/ops/lowering.h"
#include "shaders/attention/attention_bias_gradient.h"

namespace vitrine {
namespace {

using namespace attention_gradient_input;

void infer(InferContext& c) {
  infer_attention_gradient_inputs(c);
  c.require(has_relative_bias(c.attributes()), "its attention has no relative bias");
  c.output(c.input(bias).shape, DType::f32);
}

// Of scores again, and the gradients of the weights.
double flops(const LowerContext& context) { return attention_sizes(context).flops(); }

std::optional<std::string> refuses(const LowerContext& context) {
  for (const char* shader : {"attention_bias_gradient", "attention_gradient_deltas"}) {
    if (auto reason = refuse(context, shader, "f32")) return reason;
  }
  return std::nullopt;
}

Lowered lower(const LowerContext& context) {
  const AttentionSizes sizes = attention_sizes(context);
  const AttentionRows q = attention_rows_of(context, attention_input::q);
  const AttentionRows k = attention_rows_of(context, attention_input::k);
  const AttentionRows v = attention_rows_of(context, attention_input::v);
  const bool drops = drops_weights(context.attributes());
  const AttentionDrops dropping = attention_drops(context.attributes());
  const uint64_t count = context.output(0).shape.elements();

  Lowered lowered;
  const Operand statistics = append_query_statistics(context, lowered);
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("attention_bias_gradient", "f32");
  dispatch.constants = {{"local_size", row_workgroup_size(context.device(), 4 * sizes.batch * sizes.queries)},
                        {"key_width", to_u32(sizes.key_width)},
                        {"value_width", to_u32(sizes.value_width)},
                        {"drop", drops}};
  add_relative_grid(context, dispatch);
  dispatch.operands = {Operand::input(attention_input::q),
                       Operand::input(attention_input::k),
                       Operand::input(attention_input::v),
                       Operand::input(out_gradient),
                       statistics,
                       drops ? Operand::input(step) : Operand::nothing(),
                       Operand::input(bias),
                       Operand::output(0)};
  dispatch.set_params(
      shader::AttentionBiasGradientParams{.batch = to_u32(sizes.batch),
                                          .tokens = to_u32(sizes.queries),
                                          .heads = to_u32(sizes.heads),
                                          .q_stride = q.stride,
                                          .k_stride = k.stride,
                                          .v_stride = v.stride,
                                          .q_offset = q.offset,
                                          .k_offset = k.offset,
                                          .v_offset = v.offset,
                                          .scale = static_cast<float>(context.attributes().number("scale")),
                                          .count = to_u32(count),
                                          .drop_stream = dropping.stream,
                                          .drop_threshold = dropping.threshold,
                                          .drop_factor = dropping.factor});
  dispatch.groups = spread_groups(context.device(), count);
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_attention_bias_gradient{"attention_bias_gradient", infer, flops, kernels,
                                       attention_bias_gradient_cases};

ValueId attention_bias_gradient(Graph& graph, std::string name, ValueId q, ValueId k, ValueId v, ValueId out,
                                ValueId lse, ValueId out_gradient, const AttentionOptions& options) {
  return attention_bias_gradient(graph, std::move(name), q, k, v, out, lse, out_gradient,
                                 attention_attributes(options), options.step, relative_bias_of(options));
}

ValueId attention_bias_gradient(Graph& graph, std::string name, ValueId q, ValueId k, ValueId v, ValueId out,
                                ValueId lse, ValueId out_gradient, const Attributes& attributes, ValueId step,
                                ValueId bias) {
  std::vector<ValueId> inputs{q, k, v, out, lse, out_gradient};
  push_attention_extras(attributes, step, bias, inputs);
  return graph.add(op_attention_bias_gradient, std::move(name), std::move(inputs), attributes)[0];
}

}  // namespace vitrine
