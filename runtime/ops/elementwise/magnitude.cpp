#include "runtime/ops/elementwise/magnitude.h"

#include <algorithm>
#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/elementwise/magnitude.h"

namespace vitrine {
namespace {

// Elements that an invocation looks at before another workgroup is worth its place in the second pass.
constexpr uint64_t elements_each = 16;
constexpr uint64_t max_groups = 1024;

void infer(InferContext& c) {
  const Value& x = c.input(0);
  c.require(is_computable(x.dtype) && x.shape.elements() > 0,
            "x is " + std::string(name_of(x.dtype)) + " " + x.shape.to_string() +
                ", expected f32 or f16 and at least one element");
  c.output({1}, DType::f32);
}

double flops(const LowerContext&) { return 0; }

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "magnitude", name_of(c.input(0).dtype));
}

Lowered lower(const LowerContext& c) {
  Lowered lowered;
  append_magnitude(c, lowered, c.input(0).dtype, Operand::input(0), c.input(0).shape.elements(),
                   Operand::output(0));
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_magnitude{"magnitude", infer, flops, kernels, magnitude_cases};

// One pass where a workgroup sees everything; else each leaves its part's maximum to a second one.
void append_magnitude(const LowerContext& context, Lowered& lowered, DType dtype, Operand from,
                      uint64_t count, Operand to) {
  const uint32_t local_size = workgroup_size(context.device(), 128);
  const uint64_t groups = std::min(ceil_div(count, local_size * elements_each), max_groups);
  const auto pass = [&](DType of, Operand x, Operand y, uint64_t elements, uint64_t results) {
    Dispatch& dispatch = lowered.dispatches.emplace_back();
    dispatch.shader = &find_shader("magnitude", name_of(of));
    dispatch.constants = {{"local_size", local_size}};
    dispatch.operands = {x, y};
    dispatch.set_params(shader::MagnitudeParams{to_u32(elements), to_u32(results)});
    dispatch.groups = spread_groups(context.device(), results);
  };
  if (groups == 1) {
    pass(dtype, from, to, count, 1);
    return;
  }
  const Operand parts = Operand::scratch(to_u32(lowered.scratch.size()));
  lowered.scratch.push_back(groups * sizeof(float));
  pass(dtype, from, parts, count, groups);
  pass(DType::f32, parts, to, groups, 1);
}

ValueId magnitude(Graph& graph, std::string name, ValueId x) {
  return graph.add(op_magnitude, std::move(name), {x})[0];
}

}  // namespace vitrine
