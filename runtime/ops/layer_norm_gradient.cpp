#include "runtime/ops/layer_norm_gradient.h"

#include <algorithm>
#include <utility>

#include "runtime/ops/lowering.h"
#include "runtime/ops/sum_rows.h"
#include "shaders/layer_norm.h"
#include "shaders/layer_norm_gradient.h"

namespace vitrine {
namespace {

constexpr uint32_t dy_input = 0, x_input = 1, gamma_input = 2;

bool wants_parameters(const Attributes& attributes) { return attributes.flag("parameters"); }

void infer(InferContext& c) {
  const Value &dy = c.input(dy_input), &x = c.input(x_input), &gamma = c.input(gamma_input);
  c.require(
      x.shape.rank() >= 1 && dy.shape == x.shape,
      "dy is " + dy.shape.to_string() + " and x " + x.shape.to_string() + ", expected both [.., width]");
  c.require(is_computable(x.dtype) && is_computable(dy.dtype), "dy is " + std::string(name_of(dy.dtype)) +
                                                                   " and x " + std::string(name_of(x.dtype)) +
                                                                   ", expected f32 or f16");
  c.require(gamma.shape == Shape{x.shape[-1]} && gamma.dtype == DType::f32,
            "'" + gamma.name + "' is " + std::string(name_of(gamma.dtype)) + " " + gamma.shape.to_string() +
                ", expected f32 [" + std::to_string(x.shape[-1]) + "]");
  c.output(x.shape, x.dtype);
  if (!wants_parameters(c.attributes())) return;
  c.output(gamma.shape, DType::f32, "gamma");
  c.output(gamma.shape, DType::f32, "beta");
}

double flops(const LowerContext& c) {
  return (wants_parameters(c.attributes()) ? 20.0 : 15.0) *
         static_cast<double>(c.input(x_input).shape.elements());
}

std::string variant(const LowerContext& c) {
  return storage_variant(c.input(x_input).dtype, c.input(dy_input).dtype);
}

// What both kernels share: `rows` is the dispatch that works row by row, to which each gives its shader,
// constants and groups; the parameters' sums follow it.
Lowered finish(const LowerContext& c, Dispatch rows) {
  const Shape& shape = c.input(x_input).shape;
  const uint64_t width = shape[-1];
  const bool parameters = wants_parameters(c.attributes());
  Lowered lowered;
  const Operand statistics = parameters ? Operand::scratch(0) : Operand::nothing();
  rows.operands = {Operand::input(dy_input), Operand::input(x_input), Operand::input(gamma_input),
                   Operand::output(0), statistics};
  rows.set_params(shader::LayerNormParams{to_u32(shape.rows()), to_u32(width),
                                          static_cast<float>(c.attributes().number("eps"))});
  lowered.dispatches.push_back(std::move(rows));
  if (!parameters) {
    // Both read an element for the last time before the same invocation writes it.
    if (c.input(dy_input).dtype == c.output(0).dtype) lowered.in_place = {{0, dy_input}};
    return lowered;
  }
  lowered.scratch.push_back(shape.rows() * 2 * sizeof(float));

  const auto pass = [&](std::string_view types, std::array<Operand, 5> operands, uint64_t from, uint64_t to,
                        bool of_sums) {
    Dispatch& dispatch = lowered.dispatches.emplace_back();
    dispatch.shader = &find_shader("layer_norm_gradient_sums", types);
    dispatch.constants = {workgroup_size(c.device(), 128), to_u32(width), of_sums};
    dispatch.operands.assign(operands.begin(), operands.end());
    dispatch.set_params(shader::LayerNormGradientSumsParams{to_u32(from * width), to_u32(to * width)});
    dispatch.groups = spread_groups(c.device(), ceil_div(to * width, dispatch.constants[0]));
    dispatch.note = std::to_string(from) + " rows to " + std::to_string(to);
  };
  const Operand dy = Operand::input(dy_input), x = Operand::input(x_input), dgamma = Operand::output(1),
                dbeta = Operand::output(2);
  const uint64_t partial = partial_rows(shape.rows());
  if (partial == 1) {
    pass(variant(c), {dy, x, statistics, dgamma, dbeta}, shape.rows(), 1, false);
    return lowered;
  }
  lowered.scratch.insert(lowered.scratch.end(), 2, partial * width * sizeof(float));
  const Operand gamma_sums = Operand::scratch(1), beta_sums = Operand::scratch(2);
  pass(variant(c), {dy, x, statistics, gamma_sums, beta_sums}, shape.rows(), partial, false);
  pass("f32", {beta_sums, gamma_sums, Operand::nothing(), dgamma, dbeta}, partial, 1, true);
  return lowered;
}

std::optional<std::string> refuse_sums(const LowerContext& c) {
  if (!wants_parameters(c.attributes())) return std::nullopt;
  return refuse(c, "layer_norm_gradient_sums", variant(c));
}

std::optional<std::string> refuse_simple(const LowerContext& c) {
  if (auto reason = refuse_sums(c)) return reason;
  return refuse(c, "layer_norm_gradient", variant(c));
}

Lowered lower_simple(const LowerContext& c) {
  const Shape& shape = c.input(x_input).shape;
  Dispatch rows;
  rows.shader = &find_shader("layer_norm_gradient", variant(c));
  rows.constants = {row_workgroup_size(c.device(), shape[-1]), wants_parameters(c.attributes())};
  rows.groups = spread_groups(c.device(), shape.rows());
  return finish(c, std::move(rows));
}

std::optional<std::string> refuse_lanes(const LowerContext& c) {
  if (auto reason = refuse_sums(c)) return reason;
  return refuse_row_lanes(c, "layer_norm_gradient_lanes", variant(c), c.input(x_input).shape);
}

Lowered lower_lanes(const LowerContext& c) {
  const Shape& shape = c.input(x_input).shape;
  Dispatch rows;
  rows.shader = &find_shader("layer_norm_gradient_lanes", variant(c));
  rows.constants = {lanes_workgroup_size(c.device()), to_u32(shape[-1]), wants_parameters(c.attributes())};
  rows.groups = {to_u32(ceil_div(shape.rows(), rows.constants[0])), 1, 1};
  return finish(c, std::move(rows));
}

constexpr KernelDef kernels[] = {{"simple", refuse_simple, no_preference, lower_simple},
                                 {"lanes", refuse_lanes, prefer_on_cpu, lower_lanes}};

}  // namespace

const OpDef op_layer_norm_gradient{"layer_norm_gradient", infer, flops, kernels};

LayerNormGradients layer_norm_gradient(Graph& graph, const std::string& name, ValueId dy, ValueId x,
                                       ValueId gamma, double eps, bool parameters) {
  const auto found = graph.add(op_layer_norm_gradient, name, {dy, x, gamma},
                               {{"eps", eps}, {"parameters", static_cast<int64_t>(parameters)}});
  if (!parameters) return {found[0], {}, {}};
  return {found[0], found[1], found[2]};
}

}  // namespace vitrine
