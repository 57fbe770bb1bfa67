#include "runtime/ops/norms/layer_norm.h"

#include <utility>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/norms/kept_rows.h"
#include "runtime/ops/norms/layer_norm_gradient.h"
#include "runtime/ops/row_blocks.h"
#include "shaders/norms/layer_norm.h"

namespace vitrine {
namespace {

constexpr uint32_t x_input = 0, gamma_input = 1, beta_input = 2;

bool is_rms(const Attributes& attributes) { return attributes.flag("rms"); }

void infer(InferContext& c) {
  const Value& x = c.input(x_input);
  c.require(x.shape.rank() >= 1, "x is a scalar, expected [.., width]");
  c.require(is_computable(x.dtype), "x is " + std::string(name_of(x.dtype)) + ", expected f32 or f16");
  for (const uint32_t i : {gamma_input, beta_input}) {
    if (i == beta_input && is_rms(c.attributes())) continue;
    const Value& vector = c.input(i);
    c.require(vector.shape == Shape{x.shape[-1]} && vector.dtype == DType::f32,
              "'" + vector.name + "' is " + std::string(name_of(vector.dtype)) + " " +
                  vector.shape.to_string() + ", expected f32 [" + std::to_string(x.shape[-1]) + "]");
  }
  const auto out = static_cast<DType>(c.attributes().integer("out"));
  c.require(is_computable(out), "the result can't be " + std::string(name_of(out)) + ", only f32 or f16");
  c.output(x.shape, out);
}

// Mean, distance and square, normalization, scale and shift.
double flops(const LowerContext& c) { return 8.0 * static_cast<double>(c.input(x_input).shape.elements()); }

std::string variant(const LowerContext& c) {
  return storage_variant(c.input(x_input).dtype, c.output(0).dtype);
}

shader::LayerNormParams params(const LowerContext& c) {
  const Shape& shape = c.input(x_input).shape;
  return {to_u32(shape.rows()), to_u32(shape[-1]), static_cast<float>(c.attributes().number("eps"))};
}

// What all kernels share; each sets its shader, constants and groups.
Lowered finish(const LowerContext& c, Dispatch dispatch) {
  const bool rms = is_rms(c.attributes());
  dispatch.add_constants({{"rms", rms}});
  dispatch.operands = {Operand::input(x_input), Operand::input(gamma_input),
                       Operand::input(rms ? gamma_input : beta_input), Operand::output(0)};
  dispatch.set_params(params(c));
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  // All read an element for the last time before the same invocation writes it.
  if (c.input(x_input).dtype == c.output(0).dtype && !c.output_layout(0)) lowered.in_place = {{0, x_input}};
  return lowered;
}

std::optional<std::string> refuse_simple(const LowerContext& c) {
  return refuse(c, "layer_norm", variant(c));
}

Lowered lower_simple(const LowerContext& c) {
  const Shape& shape = c.input(x_input).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("layer_norm", variant(c));
  dispatch.constants = {{"local_size", row_workgroup_size(c.device(), shape[-1])}};
  dispatch.groups = spread_groups(c.device(), shape.rows());
  return finish(c, std::move(dispatch));
}

RowKeeping keeping(const LowerContext& c) {
  return {.width = c.input(x_input).shape[-1],
          .halves = c.input(x_input).dtype == DType::f16 && c.output(0).dtype == DType::f16,
          .tensors = 3};  // x, gamma, beta
}

std::optional<std::string> refuse_subgroups(const LowerContext& c) {
  return refuse_kept_rows(c, "layer_norm_subgroups", variant(c), keeping(c));
}

Lowered lower_subgroups(const LowerContext& c) {
  return finish(c, keep_rows(c.device(), "layer_norm_subgroups", variant(c), keeping(c),
                             c.input(x_input).shape.rows()));
}

std::optional<std::string> refuse_lanes(const LowerContext& c) {
  return refuse_row_lanes(c, "layer_norm_cpu_lanes", variant(c), c.input(x_input).shape);
}

Lowered lower_lanes(const LowerContext& c) {
  const Shape& shape = c.input(x_input).shape;
  Dispatch dispatch;
  const std::optional<RowBlocks> blocks = row_blocks_of(c.output_layout(0));
  dispatch.shader = &find_shader("layer_norm_cpu_lanes",
                                 blocks ? storage_variant(c.input(x_input).dtype, DType::f32) : variant(c));
  dispatch.constants = {{"local_size", lanes_workgroup_size(c.device())},
                        {"width", to_u32(shape[-1])},
                        {"block_rows", blocks ? blocks->block_rows : 0},
                        {"unroll", blocks ? blocks->unroll : 16},
                        {"halves", blocks && c.output(0).dtype == DType::f16}};
  if (blocks) dispatch.note = "into blocks";
  dispatch.groups = {to_u32(ceil_div(shape.rows(), dispatch.constant("local_size"))), 1, 1};
  return finish(c, std::move(dispatch));
}

bool lanes_write(const LowerContext& c, const Layout& layout) {
  const Shape& shape = c.output(0).shape;
  const std::optional<RowBlocks> blocks = row_blocks_of(&layout);
  return blocks && blocks->rows == shape.rows() && blocks->depth == shape[-1] && blocks->unroll % 4 == 0;
}

void backward(GradContext& c) {
  const bool rms = is_rms(c.attributes());
  const bool parameters = c.wants(gamma_input) || (!rms && c.wants(beta_input));
  // In a residual stream, the gradient that went around the block.
  ValueId residual = c.take(x_input);
  if (residual && c.graph().value(residual).dtype != c.input_value(x_input).dtype)
    c.add(x_input, std::exchange(residual, {}));
  const LayerNormGradients found =
      layer_norm_gradient(c.graph(), c.name("x"), c.gradient(0), c.input(x_input), c.input(gamma_input),
                          c.attributes().number("eps"), parameters, residual, rms);
  c.add(x_input, found.dx);
  if (!parameters) return;
  c.add(gamma_input, found.dgamma);
  if (!rms) c.add(beta_input, found.dbeta);
}

constexpr KernelDef kernels[] = {
    {"simple", Target::any, refuse_simple, no_preference, lower_simple},
    {"subgroups", Target::any, refuse_subgroups, prefer_on_gpu, lower_subgroups},
    {"cpu_lanes", Target::cpu, refuse_lanes, prefer_on_cpu, lower_lanes, nullptr, nullptr, lanes_write}};

}  // namespace

const OpDef op_layer_norm{"layer_norm", infer, flops, kernels, layer_norm_cases, backward, layer_norm_sample};

ValueId layer_norm(Graph& graph, std::string name, ValueId x, ValueId gamma, ValueId beta,
                   const LayerNormOptions& options) {
  const DType out = options.out.value_or(graph.value(x).dtype);
  Attributes attributes{{"eps", options.eps}, {"out", static_cast<int64_t>(out)}};
  std::vector<ValueId> inputs{x, gamma};
  if (options.rms) {
    attributes.set("rms", int64_t{1});
  } else {
    inputs.push_back(beta);
  }
  return graph.add(op_layer_norm, std::move(name), std::move(inputs), std::move(attributes))[0];
}

}  // namespace vitrine
