#include "runtime/check/cases.h"
#include "runtime/check/reference_matmul.h"
#include "runtime/ops/attention/attention_cases.h"
#include "runtime/ops/attention/plain_attention.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> plain_attention_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const AttentionCase& size :
         {usual_attention, biased_attentions[0], biased_attentions[1], bias_rows_attentions[0]}) {
      OpCase& c = cases.emplace_back();
      c.label = size.label();
      c.inputs = size.inputs(dtype);
      const reference::Attention expected = size.expected(c.inputs);
      c.expected = {expected.out, expected.scores, expected.weights};
      size.add_extras(c.inputs);
      c.build = [size](Graph& graph, std::span<const ValueId> ids) {
        const PlainAttentionResult result =
            plain_attention(graph, "y", ids[0], ids[1], ids[2], size.options(ids));
        return std::vector{result.out, result.scores, result.weights};
      };
    }
  }
  return cases;
}

}  // namespace vitrine
