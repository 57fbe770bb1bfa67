#include "runtime/ops/training/adam_step.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/training/adam_step.h"

namespace vitrine {
namespace {

constexpr FlatUpdate update{.moments = 2};

void infer(InferContext& c) {
  for (const uint32_t i : {FlatUpdate::first_moment, FlatUpdate::first_moment + 1})
    c.require(c.has_input(i), "a moment is missing");
  update.infer(c);
  for (const char* name : {"beta1", "beta2"}) {
    const double beta = c.attributes().number(name);
    c.require(beta >= 0 && beta < 1,
              std::string(name) + " is " + std::to_string(beta) + ", 0 or more and less than 1 was expected");
  }
  c.require(c.attributes().number("eps") >= 0, "eps is negative");
}

double flops(const LowerContext& c) { return 14.0 * static_cast<double>(c.output(0).shape.elements()); }

Lowered lower_as(const LowerContext& c, std::string_view shader, bool quads) {
  const auto number = [&](std::string_view name) { return c.attributes().number(name); };
  Dispatch dispatch;
  dispatch.constants = {{"decoupled", c.attributes().flag("decoupled")},
                        {"has_scale", c.has_input(update.scale())}};
  dispatch.set_params(shader::AdamStepParams{.count = to_u32(c.output(0).shape.elements()),
                                             .decayed = decayed_elements(c),
                                             .weight_decay = static_cast<float>(number("weight_decay")),
                                             .beta1 = static_cast<float>(number("beta1")),
                                             .rest1 = static_cast<float>(1 - number("beta1")),
                                             .beta2 = static_cast<float>(number("beta2")),
                                             .rest2 = static_cast<float>(1 - number("beta2")),
                                             .eps = static_cast<float>(number("eps")),
                                             .rate_factor = rate_factor_of(c)});
  return update.lower(c, std::move(dispatch), shader, quads);
}

std::optional<std::string> refuse_simple(const LowerContext& c) {
  return update.refuses(c, "adam_step", false);
}
std::optional<std::string> refuse_quads(const LowerContext& c) {
  return update.refuses(c, "adam_step_cpu_quads", true);
}
Lowered lower_simple(const LowerContext& c) { return lower_as(c, "adam_step", false); }
Lowered lower_quads(const LowerContext& c) { return lower_as(c, "adam_step_cpu_quads", true); }

constexpr KernelDef kernels[] = {{"simple", Target::any, refuse_simple, no_preference, lower_simple},
                                 {"cpu_quads", Target::cpu, refuse_quads, prefer_on_cpu, lower_quads}};

}  // namespace

const OpDef op_adam_step{"adam_step", infer, flops, kernels, adam_step_cases};

AdamState adam_step(Graph& graph, std::string name, ValueId param, ValueId gradient, ValueId m, ValueId v,
                    ValueId step, const AdamOptions& options) {
  Attributes attributes{{"beta1", options.beta1},
                        {"beta2", options.beta2},
                        {"eps", options.eps},
                        {"weight_decay", options.weight_decay},
                        {"decoupled", int64_t{options.decoupled}},
                        {"decay_elements", decay_setting(options.decay_elements)}};
  set_rate_factor(attributes, options.rate_factor);
  const auto out = graph.add(op_adam_step, std::move(name),
                             {param, gradient, m, v, step, options.gradient_scale}, std::move(attributes));
  return {out[0], out[1], out[2]};
}

}  // namespace vitrine
