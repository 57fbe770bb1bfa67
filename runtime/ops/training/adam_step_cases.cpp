#include "runtime/check/cases.h"
#include "runtime/check/reference_training.h"
#include "runtime/ops/training/adam_step.h"
#include "runtime/ops/training/flat_update_cases.h"

namespace vitrine {

using namespace cases;

namespace {

using flat_update_case::decayed, flat_update_case::first_step, flat_update_case::gradient_scale,
    flat_update_case::rate, flat_update_case::scaled, flat_update_case::vector;

}  // namespace

std::vector<OpCase> adam_step_cases() {
  std::vector<OpCase> cases;
  for (const auto& [decoupled, clipped] :
       {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
    const reference::Adam adam{.rate = rate, .weight_decay = 0.3, .decoupled = decoupled, .decayed = decayed};
    reference::Values param = vector(1, -1).values, m = vector(3, -1).values, v = vector(4, 0).values;
    adam.step(1, param, scaled(vector(2, -1), clipped).values, m, v);
    OpCase c{.label = std::string(decoupled ? "AdamW" : "Adam") + (clipped ? ", clipped" : ""),
             .inputs = {{vector(1, -1)},
                        {vector(2, -1)},
                        {vector(3, -1)},
                        {vector(4, 0)},
                        {first_step(adam.beta1, adam.beta2)}}};
    if (clipped) c.inputs.push_back({gradient_scale()});
    c.for_its_path = clipped;
    c.expected = {param, m, v};
    c.build = [decoupled, clipped](Graph& graph, std::span<const ValueId> ids) {
      const AdamState state = adam_step(graph, "y", ids[0], ids[1], ids[2], ids[3], ids[4],
                                        {.weight_decay = 0.3,
                                         .decoupled = decoupled,
                                         .decay_elements = decayed,
                                         .gradient_scale = clipped ? ids[5] : ValueId{}});
      return std::vector{state.param, state.m, state.v};
    };
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace vitrine
