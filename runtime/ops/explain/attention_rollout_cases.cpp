#include "runtime/check/cases.h"
#include "runtime/ops/explain/attention_rollout.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> attention_rollout_cases() {
  constexpr uint64_t batch = 2, tokens = 17;
  OpCase c;
  c.label = "the last layer's first row";
  c.inputs = {{random_tensor({batch, tokens, tokens}, DType::f32, 1, 0, 1)}};
  std::vector<double>& row = c.expected.emplace_back();
  for (uint64_t b = 0; b < batch; ++b) {
    // (maps + I) / 2, its first row divided by the row's sum.
    double sum = 0;
    for (uint64_t j = 0; j < tokens; ++j)
      sum += c.inputs[0].tensor.values[b * tokens * tokens + j] + (j == 0 ? 1 : 0);
    for (uint64_t j = 0; j < tokens; ++j)
      row.push_back((c.inputs[0].tensor.values[b * tokens * tokens + j] + (j == 0 ? 1 : 0)) / sum);
  }
  c.build = [](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{attention_rollout(graph, "y", ids[0], RolloutRows{.rows = 1})};
  };
  return {c};
}

}  // namespace vitrine
