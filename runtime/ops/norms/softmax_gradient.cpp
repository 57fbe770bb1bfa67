#include "runtime/ops/norms/softmax_gradient.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "runtime/ops/norms/kept_rows.h"
#include "shaders/norms/softmax.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const Value &dy = c.input(0), &y = c.input(1);
  c.require(y.shape.rank() >= 1, "y is a scalar, expected [.., width]");
  c.require(is_computable(y.dtype), "y is " + std::string(name_of(y.dtype)) + ", expected f32 or f16");
  c.require(dy.shape == y.shape && dy.dtype == y.dtype,
            "dy is " + std::string(name_of(dy.dtype)) + " " + dy.shape.to_string() + " and y " +
                std::string(name_of(y.dtype)) + " " + y.shape.to_string() + ", expected the same");
  c.output(y.shape, y.dtype);
}

double flops(const LowerContext& c) { return 4.0 * static_cast<double>(c.output(0).shape.elements()); }

// What all kernels share; each sets its shader, constants and groups.
Lowered finish(const LowerContext& c, Dispatch dispatch) {
  const Shape& shape = c.output(0).shape;
  dispatch.operands = {Operand::input(0), Operand::input(1), Operand::output(0)};
  dispatch.set_params(shader::SoftmaxParams{to_u32(shape.rows()), to_u32(shape[-1])});
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  // All read an element for the last time before the same invocation writes it.
  lowered.in_place = {{0, 0}, {0, 1}};
  return lowered;
}

std::optional<std::string> refuse_simple(const LowerContext& c) {
  return refuse(c, "softmax_gradient", name_of(c.output(0).dtype));
}

Lowered lower_simple(const LowerContext& c) {
  const Shape& shape = c.output(0).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("softmax_gradient", name_of(c.output(0).dtype));
  dispatch.constants = {{"local_size", row_workgroup_size(c.device(), shape[-1])}};
  dispatch.groups = spread_groups(c.device(), shape.rows());
  return finish(c, std::move(dispatch));
}

RowKeeping keeping(const LowerContext& c) {
  return {.width = c.output(0).shape[-1], .halves = c.output(0).dtype == DType::f16, .tensors = 2};
}

std::optional<std::string> refuse_subgroups(const LowerContext& c) {
  return refuse_kept_rows(c, "softmax_gradient_subgroups", name_of(c.output(0).dtype), keeping(c));
}

Lowered lower_subgroups(const LowerContext& c) {
  return finish(c, keep_rows(c.device(), "softmax_gradient_subgroups", name_of(c.output(0).dtype), keeping(c),
                             c.output(0).shape.rows()));
}

std::optional<std::string> refuse_lanes(const LowerContext& c) {
  return refuse_row_lanes(c, "softmax_gradient_cpu_lanes", name_of(c.output(0).dtype), c.output(0).shape);
}

Lowered lower_lanes(const LowerContext& c) {
  const Shape& shape = c.output(0).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("softmax_gradient_cpu_lanes", name_of(c.output(0).dtype));
  dispatch.constants = {{"local_size", lanes_workgroup_size(c.device())}, {"width", to_u32(shape[-1])}};
  dispatch.groups = {to_u32(ceil_div(shape.rows(), dispatch.constant("local_size"))), 1, 1};
  return finish(c, std::move(dispatch));
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuse_simple, no_preference, lower_simple},
                                 {"subgroups", Target::any, refuse_subgroups, prefer_on_gpu, lower_subgroups},
                                 {"cpu_lanes", Target::cpu, refuse_lanes, prefer_on_cpu, lower_lanes}};

}  // namespace

const OpDef op_softmax_gradient{"softmax_gradient", infer, flops, kernels, softmax_gradient_cases};

ValueId softmax_gradient(Graph& graph, std::string name, ValueId dy, ValueId y) {
  return graph.add(op_softmax_gradient, std::move(name), {dy, y})[0];
}

}  // namespace vitrine
