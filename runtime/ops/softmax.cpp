#include "runtime/ops/softmax.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/softmax.h"

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

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "softmax", name_of(c.input(0).dtype));
}

Lowered lower(const LowerContext& c) {
  const Shape& shape = c.input(0).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("softmax", name_of(c.input(0).dtype));
  dispatch.constants = {row_workgroup_size(c.device(), shape[-1])};
  dispatch.operands = {Operand::input(0), Operand::output(0)};
  dispatch.set_params(shader::SoftmaxParams{to_u32(shape.rows()), to_u32(shape[-1])});
  dispatch.groups = spread_groups(c.device(), shape.rows());
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  lowered.in_place = {{0, 0}};
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", refuses, no_preference, lower}};

}  // namespace

const OpDef op_softmax{"softmax", infer, flops, kernels};

ValueId softmax(Graph& graph, std::string name, ValueId x) {
  return graph.add(op_softmax, std::move(name), {x})[0];
}

}  // namespace vitrine
