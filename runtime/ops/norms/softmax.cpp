#include "runtime/ops/norms/softmax.h"

#include <utility>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/norms/kept_rows.h"
#include "runtime/ops/norms/softmax_gradient.h"
#include "shaders/norms/softmax.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const Value& x = c.input(0);
  c.require(x.shape.rank() >= 1, "x is a scalar, expected [.., width]");
  c.require(is_computable(x.dtype), "x is " + std::string(name_of(x.dtype)) + ", expected f32 or f16");
  c.output(x.shape, x.dtype);
}

// Maximum, exponential (counted as one), sum, quotient.
double flops(const LowerContext& c) { return 4.0 * static_cast<double>(c.input(0).shape.elements()); }

// What all kernels share; each sets its shader, constants and groups.
Lowered finish(const LowerContext& c, Dispatch dispatch) {
  const Shape& shape = c.input(0).shape;
  dispatch.operands = {Operand::input(0), Operand::output(0)};
  dispatch.set_params(shader::SoftmaxParams{to_u32(shape.rows()), to_u32(shape[-1])});
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  // All read an element for the last time before the same invocation writes it.
  lowered.in_place = {{0, 0}};
  return lowered;
}

std::optional<std::string> refuse_simple(const LowerContext& c) {
  return refuse(c, "softmax", name_of(c.input(0).dtype));
}

Lowered lower_simple(const LowerContext& c) {
  const Shape& shape = c.input(0).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("softmax", name_of(c.input(0).dtype));
  dispatch.constants = {{"local_size", row_workgroup_size(c.device(), shape[-1])}};
  dispatch.groups = spread_groups(c.device(), shape.rows());
  return finish(c, std::move(dispatch));
}

RowKeeping keeping(const LowerContext& c) {
  return {.width = c.input(0).shape[-1],
          .halves = c.input(0).dtype == DType::f16,
          .tensors = 2};  // x, and what leads to its exponentials
}

std::optional<std::string> refuse_subgroups(const LowerContext& c) {
  return refuse_kept_rows(c, "softmax_subgroups", name_of(c.input(0).dtype), keeping(c));
}

Lowered lower_subgroups(const LowerContext& c) {
  return finish(c, keep_rows(c.device(), "softmax_subgroups", name_of(c.input(0).dtype), keeping(c),
                             c.input(0).shape.rows()));
}

std::optional<std::string> refuse_lanes(const LowerContext& c) {
  return refuse_row_lanes(c, "softmax_cpu_lanes", name_of(c.input(0).dtype), c.input(0).shape);
}

Lowered lower_lanes(const LowerContext& c) {
  const Shape& shape = c.input(0).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("softmax_cpu_lanes", name_of(c.input(0).dtype));
  dispatch.constants = {{"local_size", lanes_workgroup_size(c.device())}, {"width", to_u32(shape[-1])}};
  dispatch.groups = {to_u32(ceil_div(shape.rows(), dispatch.constant("local_size"))), 1, 1};
  return finish(c, std::move(dispatch));
}

void backward(GradContext& c) {
  c.add(0, softmax_gradient(c.graph(), c.name("x"), c.gradient(0), c.output(0)));
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuse_simple, no_preference, lower_simple},
                                 {"subgroups", Target::any, refuse_subgroups, prefer_on_gpu, lower_subgroups},
                                 {"cpu_lanes", Target::cpu, refuse_lanes, prefer_on_cpu, lower_lanes}};

}  // namespace

const OpDef op_softmax{"softmax", infer, flops, kernels, softmax_cases, backward, softmax_sample};

ValueId softmax(Graph& graph, std::string name, ValueId x) {
  return graph.add(op_softmax, std::move(name), {x})[0];
}

}  // namespace vitrine
