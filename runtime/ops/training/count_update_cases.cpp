#include <limits>

#include "runtime/check/cases.h"
#include "runtime/ops/training/count_update.h"
#include "shaders/lib/step_state.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> count_update_cases() {
  std::vector<OpCase> cases;
  for (const bool made : {true, false}) {
    HostTensor step = filled({VITRINE_STEP_WORDS}, DType::u32, 0);
    for (uint32_t i = 0; i < VITRINE_STEP_WORDS; ++i) step.values[i] = 100 + i;
    step.values[VITRINE_STEP_UPDATES] = 41;
    const double scale = made ? 0.5 : std::numeric_limits<double>::quiet_NaN();
    Values expected = step.values;
    expected[VITRINE_STEP_MOMENT1] = 100 + VITRINE_STEP_CANDIDATES + 2;
    expected[VITRINE_STEP_MOMENT2] = 100 + VITRINE_STEP_CANDIDATES + 3;
    OpCase c{.label = made ? "an update that is made" : "one that is left out",
             .inputs = {{step}, {{{2}, DType::f32, {scale, 1}}}, {filled({1}, DType::u32, 42)}}};
    c.expected = {expected, {made ? 43.0 : 42.0}};
    c.exact = true;
    // One number is always the same.
    c.allow_nonfinite = true;
    c.build = [](Graph& graph, std::span<const ValueId> ids) {
      const CountedUpdate counted = count_update(graph, "y", ids[0], ids[1], ids[2]);
      return std::vector{counted.step, counted.updates};
    };
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace vitrine
