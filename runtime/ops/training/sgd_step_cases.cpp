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
  struct Kind {
    const char* name;
    double momentum;
    bool nesterov;
  };
  std::vector<OpCase> cases;
  for (const Kind& kind : {Kind{"Nesterov's momentum", 0.9, true}, Kind{"momentum", 0.9, false},
                           Kind{"no momentum", 0, false}}) {
    for (const bool clipped : {false, true}) {
      const reference::Sgd sgd{.rate = rate,
                               .momentum = kind.momentum,
                               .weight_decay = 0.3,
                               .nesterov = kind.nesterov,
                               .decayed = decayed};
      const bool moves = kind.momentum > 0;
      reference::Values param = vector(1, -1).values,
                        velocity = moves ? vector(3, -1).values : reference::Values(param.size());
      sgd.step(param, scaled(vector(2, -1), clipped).values, velocity);
      OpCase& c = cases.emplace_back();
      c.label = std::string(kind.name) + (clipped ? ", clipped" : "");
      c.inputs = {{vector(1, -1)}, {vector(2, -1)}, {first_step(0, 0)}};
      if (moves) c.inputs.push_back({vector(3, -1)});
      if (clipped) c.inputs.push_back({gradient_scale()});
      c.for_its_path = cases.size() > 1;
      c.expected = {param};
      if (moves) c.expected.push_back(velocity);
      c.build = [sgd, moves, clipped](Graph& graph, std::span<const ValueId> ids) {
        const SgdState state = sgd_step(graph, "y", ids[0], ids[1], moves ? ids[3] : ValueId{}, ids[2],
                                        {.momentum = sgd.momentum,
                                         .weight_decay = sgd.weight_decay,
                                         .nesterov = sgd.nesterov,
                                         .decay_elements = decayed,
                                         .gradient_scale = clipped ? ids.back() : ValueId{}});
        return moves ? std::vector{state.param, state.velocity} : std::vector{state.param};
      };
    }
  }
  return cases;
}

}  // namespace vitrine
