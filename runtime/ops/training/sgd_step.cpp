#include "runtime/ops/training/sgd_step.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/training/sgd_step.h"

namespace vitrine {
namespace {

constexpr FlatUpdate update{.moments = 1};
constexpr uint32_t velocity_input = FlatUpdate::first_moment;

void infer(InferContext& c) {
  update.infer(c);
  const double momentum = c.attributes().number("momentum");
  c.require(momentum >= 0, "momentum is " + std::to_string(momentum) + ", 0 or more was expected");
  c.require((momentum > 0) == c.has_input(velocity_input),
            "momentum is " + std::to_string(momentum) + ", and there is " +
                (c.has_input(velocity_input) ? "a" : "no") + " velocity");
  c.require(momentum > 0 || !c.attributes().flag("nesterov"), "nesterov needs momentum");
}

double flops(const LowerContext& c) {
  return (c.has_input(velocity_input) ? 6.0 : 4.0) * static_cast<double>(c.output(0).shape.elements());
}

Lowered lower_as(const LowerContext& c, std::string_view shader, bool quads) {
  Dispatch dispatch;
  dispatch.constants = {{"has_momentum", c.has_input(velocity_input)},
                        {"nesterov", c.attributes().flag("nesterov")},
                        {"has_scale", c.has_input(update.scale())}};
  dispatch.set_params(shader::SgdStepParams{to_u32(c.output(0).shape.elements()), decayed_elements(c),
                                            static_cast<float>(c.attributes().number("weight_decay")),
                                            static_cast<float>(c.attributes().number("momentum")),
                                            rate_factor_of(c)});
  return update.lower(c, std::move(dispatch), shader, quads);
}

std::optional<std::string> refuse_simple(const LowerContext& c) {
  return update.refuses(c, "sgd_step", false);
}
std::optional<std::string> refuse_quads(const LowerContext& c) {
  return update.refuses(c, "sgd_step_cpu_quads", true);
}
Lowered lower_simple(const LowerContext& c) { return lower_as(c, "sgd_step", false); }
Lowered lower_quads(const LowerContext& c) { return lower_as(c, "sgd_step_cpu_quads", true); }

constexpr KernelDef kernels[] = {{"simple", Target::any, refuse_simple, no_preference, lower_simple},
                                 {"cpu_quads", Target::cpu, refuse_quads, prefer_on_cpu, lower_quads}};

}  // namespace

const OpDef op_sgd_step{"sgd_step", infer, flops, kernels, sgd_step_cases};

SgdState sgd_step(Graph& graph, std::string name, ValueId param, ValueId gradient, ValueId velocity,
                  ValueId step, const SgdOptions& options) {
  Attributes attributes{{"momentum", options.momentum},
                        {"weight_decay", options.weight_decay},
                        {"nesterov", int64_t{options.nesterov}},
                        {"decay_elements", decay_setting(options.decay_elements)}};
  set_rate_factor(attributes, options.rate_factor);
  const auto out =
      graph.add(op_sgd_step, std::move(name), {param, gradient, velocity, step, options.gradient_scale},
                std::move(attributes));
  return {out[0], velocity ? out[1] : ValueId{}};
}

}  // namespace vitrine
