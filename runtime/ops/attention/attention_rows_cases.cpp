#include <cmath>

#include "runtime/check/cases.h"
#include "runtime/check/reference_matmul.h"
#include "runtime/ops/attention/attention_cases.h"
#include "runtime/ops/attention/attention_rows.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> attention_rows_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](const AttentionCase& size, DType dtype) {
    for (const bool mean_heads : {false, true}) {
      OpCase& c = cases.emplace_back();
      c.label = (mean_heads ? "the mean of " : "all of ") + size.label();
      c.inputs = size.inputs(dtype);
      const reference::Attention expected = size.expected(c.inputs);
      HostTensor lse{{size.batch, size.heads, size.queries}, DType::f32, expected.lse};
      for (double& value : lse.values) value = round_to(DType::f32, value);
      const uint64_t heads_out = mean_heads ? 1 : size.heads, each = size.queries * size.keys;
      std::vector<double>& weights = c.expected.emplace_back(size.batch * heads_out * each);
      for (uint64_t i = 0; i < expected.scores.size(); ++i) {
        const uint64_t batch = i / (size.heads * each), head = mean_heads ? 0 : i / each % size.heads;
        weights[(batch * heads_out + head) * each + i % each] +=
            std::exp(expected.scores[i] - lse.values[i / size.keys]) / (mean_heads ? size.heads : 1);
      }
      c.inputs[2] = {std::move(lse)};
      c.tolerance = 2e-6;  // q and k are exact in f16 as well, and the weights are f32
      size.add_extras(c.inputs);
      c.build = [size, mean_heads](Graph& graph, std::span<const ValueId> ids) {
        return std::vector{attention_rows(graph, "y", ids[0], ids[1], ids[2], size.options(ids),
                                          {.mean_heads = mean_heads})};
      };
    }
  };
  for (const DType dtype : dtypes) {
    add(usual_attention, dtype);
    for (const AttentionCase& size : {biased_attentions[0], biased_attentions[1], bias_rows_attentions[0]})
      add(size, dtype);
  }
  return cases;
}

}  // namespace vitrine
