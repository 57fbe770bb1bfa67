#include "runtime/check/cases.h"
#include "runtime/check/reference_training.h"
#include "runtime/ops/training/flat_update_cases.h"
#include "runtime/ops/training/sgd_step.h"

namespace vitrine {

using namespace cases;

namespace {

using flat_update_case::decayed, flat_update_case::first_step, flat_update_case::gradient_scale,
    flat_update_case::rate, flat_update_case::scaled, flat_update_case::vector;

}  // namespace

std::vector<OpCase> sgd_step_cases() {
  std::vector<OpCase> cases;
  for (const bool nesterov : {true, false}) {
    for (const bool clipped : {false, true}) {
      const reference::Sgd sgd{
          .rate = rate, .momentum = 0.9, .weight_decay = 0.3, .nesterov = nesterov, .decayed = decayed};
      reference::Values param = vector(1, -1).values, velocity = vector(3, -1).values;
      sgd.step(param, scaled(vector(2, -1), clipped).values, velocity);
      OpCase& c = cases.emplace_back();
      c.label = std::string(nesterov ? "Nesterov's momentum" : "momentum") + (clipped ? ", clipped" : "");
      c.inputs = {{vector(1, -1)}, {vector(2, -1)}, {vector(3, -1)}, {first_step(0, 0)}};
      if (clipped) c.inputs.push_back({gradient_scale()});
      c.for_its_path = !nesterov || clipped;
      c.expected = {param, velocity};
      c.build = [sgd, clipped](Graph& graph, std::span<const ValueId> ids) {
        const SgdState state = sgd_step(graph, "y", ids[0], ids[1], ids[2], ids[3],
                                        {.momentum = sgd.momentum,
                                         .weight_decay = sgd.weight_decay,
                                         .nesterov = sgd.nesterov,
                                         .decay_elements = decayed,
                                         .gradient_scale = clipped ? ids[4] : ValueId{}});
        return std::vector{state.param, state.velocity};
      };
    }
  }
  return cases;
}

}  // namespace vitrine
