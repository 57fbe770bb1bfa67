#include "runtime/ops/layer_norm.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/layer_norm.h"

namespace vitrine {
namespace {

constexpr uint32_t x_input = 0, gamma_input = 1, beta_input = 2;

void infer(InferContext& c) {
  const Value& x = c.input(x_input);
  c.require(x.shape.rank() >= 1, "x is a scalar, expected [.., width]");
  c.require(is_computable(x.dtype), "x is " + std::string(name_of(x.dtype)) + ", expected f32 or f16");
  for (const uint32_t i : {gamma_input, beta_input}) {
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

std::optional<std::string> refuses(const LowerContext& c) { return refuse(c, "layer_norm", variant(c)); }

Lowered lower(const LowerContext& c) {
  const Shape& shape = c.input(x_input).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("layer_norm", variant(c));
  dispatch.constants = {row_workgroup_size(c.device(), shape[-1])};
  dispatch.operands = {Operand::input(x_input), Operand::input(gamma_input), Operand::input(beta_input),
                       Operand::output(0)};
  dispatch.set_params(shader::LayerNormParams{to_u32(shape.rows()), to_u32(shape[-1]),
                                              static_cast<float>(c.attributes().number("eps"))});
  dispatch.groups = spread_groups(c.device(), shape.rows());
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  if (c.input(x_input).dtype == c.output(0).dtype) lowered.in_place = {{0, x_input}};
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", refuses, no_preference, lower}};

}  // namespace

const OpDef op_layer_norm{"layer_norm", infer, flops, kernels};

ValueId layer_norm(Graph& graph, std::string name, ValueId x, ValueId gamma, ValueId beta,
                   const LayerNormOptions& options) {
  const DType out = options.out.value_or(graph.value(x).dtype);
  return graph.add(op_layer_norm, std::move(name), {x, gamma, beta},
                   {{"eps", options.eps}, {"out", static_cast<int64_t>(out)}})[0];
}

}  // namespace vitrine
