#include "runtime/check/cases.h"
#include "runtime/check/reference_training.h"
#include "runtime/ops/training/flat_update_cases.h"
#include "runtime/ops/training/sgd_step.h"

namespace vitrine {

using namespace cases;

namespace {

using flat_update_case::decayed, flat_update_case::first_step, flat_update_case::rate,
    flat_update_case::vector;

}  // namespace

std::vector<OpCase> sgd_step_cases() {
  const reference::Sgd sgd{
      .rate = rate, .momentum = 0.9, .weight_decay = 0.3, .nesterov = true, .decayed = decayed};
  reference::Values param = vector(1, -1).values, velocity = vector(3, -1).values;
  sgd.step(param, vector(2, -1).values, velocity);
  OpCase c{.label = "Nesterov's momentum",
           .inputs = {{vector(1, -1)}, {vector(2, -1)}, {vector(3, -1)}, {first_step(0, 0)}}};
  c.expected = {param, velocity};
  c.build = [sgd](Graph& graph, std::span<const ValueId> ids) {
    const SgdState state = sgd_step(graph, "y", ids[0], ids[1], ids[2], ids[3],
                                    {.momentum = sgd.momentum,
                                     .weight_decay = sgd.weight_decay,
                                     .nesterov = true,
                                     .decay_elements = decayed});
    return std::vector{state.param, state.velocity};
  };
  return {c};
}

}  // namespace vitrine
