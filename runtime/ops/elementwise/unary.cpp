#include "runtime/ops/elementwise/unary.h"

#include <utility>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/elementwise/activation_gradient.h"
#include "runtime/ops/lowering.h"
#include "shaders/elementwise/unary.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const Value& x = c.input(0);
  c.require(is_computable(x.dtype), "x is " + std::string(name_of(x.dtype)) + ", expected f32 or f16");
  const int64_t function = c.attributes().integer("function");
  c.require(function > VITRINE_ACTIVATION_NONE && function <= VITRINE_UNARY_SCALE,
            "there is no function of number " + std::to_string(function));
  c.output(x.shape, x.dtype);
}

double flops(const LowerContext& c) { return static_cast<double>(c.output(0).shape.elements()); }

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "unary", name_of(c.input(0).dtype));
}

Lowered lower(const LowerContext& c) {
  const uint64_t count = c.output(0).shape.elements();
  Dispatch dispatch;
  dispatch.shader = &find_shader("unary", name_of(c.input(0).dtype));
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"function", to_u32(static_cast<uint64_t>(c.attributes().integer("function")))}};
  dispatch.operands = {Operand::input(0), Operand::output(0)};
  dispatch.set_params(
      shader::UnaryParams{to_u32(count), static_cast<float>(c.attributes().number("factor"))});
  dispatch.groups = spread_groups(c.device(), ceil_div(count, dispatch.constant("local_size")));
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  lowered.in_place = {{0, 0}};
  return lowered;
}

void backward(GradContext& c) {
  const int64_t function = c.attributes().integer("function");
  c.add(0, function == VITRINE_UNARY_SCALE
               ? scale(c.graph(), c.name("x"), c.gradient(0), c.attributes().number("factor"))
               : activation_gradient(c.graph(), c.name("x"), c.gradient(0), c.input(0),
                                     static_cast<Activation>(function)));
}

std::optional<std::string> refuses_quads(const LowerContext& c) {
  return refuse_quads(c, "unary_cpu_quads", name_of(c.input(0).dtype));
}

Lowered lower_quads(const LowerContext& c) {
  return lower_by_quads(c, lower(c), "unary_cpu_quads", name_of(c.input(0).dtype));
}

std::optional<std::string> refuses_wide(const LowerContext& c) {
  return refuse(c, "unary_wide", name_of(c.input(0).dtype));
}

Lowered lower_as_wide(const LowerContext& c) {
  return lower_wide(c, lower(c), "unary_wide", name_of(c.input(0).dtype));
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower},
                                 {"wide", Target::any, refuses_wide, prefer_on_gpu, lower_as_wide},
                                 {"cpu_quads", Target::cpu, refuses_quads, prefer_on_cpu, lower_quads}};

ValueId apply(Graph& graph, std::string name, ValueId x, int64_t function, double factor) {
  return graph.add(op_unary, std::move(name), {x}, {{"function", function}, {"factor", factor}})[0];
}

}  // namespace

const OpDef op_unary{"unary", infer, flops, kernels, unary_cases, backward};

ValueId activate(Graph& graph, std::string name, ValueId x, Activation activation) {
  if (activation == Activation::none) return x;
  return apply(graph, std::move(name), x, static_cast<int64_t>(activation), 1.0);
}

ValueId scale(Graph& graph, std::string name, ValueId x, double factor) {
  return apply(graph, std::move(name), x, VITRINE_UNARY_SCALE, factor);
}

}  // namespace vitrine
