#include "runtime/ops/training/argmax.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/training/argmax.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const Value& x = c.input(0);
  c.require(x.dtype == DType::f32 && x.shape.rank() == 2, "x is " + std::string(name_of(x.dtype)) + " " +
                                                              x.shape.to_string() +
                                                              ", f32 [rows, elements] was expected");
  c.output({x.shape[0]}, DType::u32);
}

double flops(const LowerContext& c) { return static_cast<double>(c.input(0).shape.elements()); }

std::optional<std::string> refuses(const LowerContext& c) { return refuse(c, "argmax", "f32"); }

Lowered lower(const LowerContext& c) {
  const Shape& x = c.input(0).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("argmax", "f32");
  dispatch.constants = {{"local_size", row_workgroup_size(c.device(), x[1])}};
  dispatch.operands = {Operand::input(0), Operand::output(0)};
  dispatch.set_params(shader::ArgmaxParams{to_u32(x[0]), to_u32(x[1])});
  dispatch.groups = spread_groups(c.device(), x[0]);
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_argmax{"argmax", infer, flops, kernels, argmax_cases};

ValueId argmax(Graph& graph, std::string name, ValueId x) {
  return graph.add(op_argmax, std::move(name), {x})[0];
}

}  // namespace vitrine
