#include "runtime/ops/elementwise/activation_gradient.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/elementwise/activation_gradient.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const Value &dy = c.input(0), &x = c.input(1);
  c.require(is_computable(x.dtype), "x is " + std::string(name_of(x.dtype)) + ", expected f32 or f16");
  c.require(dy.shape == x.shape && dy.dtype == x.dtype,
            "dy is " + std::string(name_of(dy.dtype)) + " " + dy.shape.to_string() + " and x " +
                std::string(name_of(x.dtype)) + " " + x.shape.to_string() + ", expected the same");
  const int64_t activation = c.attributes().integer("activation");
  c.require(activation > VITRINE_ACTIVATION_NONE && activation < VITRINE_ACTIVATION_COUNT,
            "there is no activation of number " + std::to_string(activation));
  c.output(x.shape, x.dtype);
}

double flops(const LowerContext& c) { return 2.0 * static_cast<double>(c.output(0).shape.elements()); }

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "activation_gradient", name_of(c.input(0).dtype));
}

Lowered lower(const LowerContext& c) {
  const uint64_t count = c.output(0).shape.elements();
  Dispatch dispatch;
  dispatch.shader = &find_shader("activation_gradient", name_of(c.input(0).dtype));
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"activation", to_u32(static_cast<uint64_t>(c.attributes().integer("activation")))}};
  dispatch.operands = {Operand::input(0), Operand::input(1), Operand::output(0)};
  dispatch.set_params(shader::ActivationGradientParams{to_u32(count)});
  dispatch.groups = spread_groups(c.device(), ceil_div(count, dispatch.constant("local_size")));
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  lowered.in_place = {{0, 0}, {0, 1}};
  return lowered;
}

std::optional<std::string> refuses_quads(const LowerContext& c) {
  return refuse_quads(c, "activation_gradient_cpu_quads", name_of(c.input(0).dtype));
}

Lowered lower_quads(const LowerContext& c) {
  return lower_by_quads(c, lower(c), "activation_gradient_cpu_quads", name_of(c.input(0).dtype));
}

std::optional<std::string> refuses_wide(const LowerContext& c) {
  return refuse(c, "activation_gradient_wide", name_of(c.input(0).dtype));
}

Lowered lower_as_wide(const LowerContext& c) {
  return lower_wide(c, lower(c), "activation_gradient_wide", name_of(c.input(0).dtype));
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower},
                                 {"wide", Target::any, refuses_wide, prefer_on_gpu, lower_as_wide},
                                 {"cpu_quads", Target::cpu, refuses_quads, prefer_on_cpu, lower_quads}};

}  // namespace

const OpDef op_activation_gradient{"activation_gradient", infer, flops, kernels, activation_gradient_cases};

ValueId activation_gradient(Graph& graph, std::string name, ValueId dy, ValueId x, Activation activation) {
  if (activation == Activation::none) return dy;
  return graph.add(op_activation_gradient, std::move(name), {dy, x},
                   {{"activation", static_cast<int64_t>(activation)}})[0];
}

}  // namespace vitrine
