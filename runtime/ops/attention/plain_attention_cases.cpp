#include "runtime/check/cases.h"
#include "runtime/check/reference_matmul.h"
#include "runtime/ops/attention/attention_cases.h"
#include "runtime/ops/attention/plain_attention.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> plain_attention_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    OpCase& c = cases.emplace_back();
    c.label = "2 heads of 64";
    c.inputs = usual_attention.inputs(dtype);
    const reference::Attention expected = usual_attention.expected(c.inputs);
    c.expected = {expected.out, expected.scores, expected.weights};
    c.build = [](Graph& graph, std::span<const ValueId> ids) {
      const PlainAttentionResult result =
          plain_attention(graph, "y", ids[0], ids[1], ids[2], usual_attention.options());
      return std::vector{result.out, result.scores, result.weights};
    };
  }
  return cases;
}

}  // namespace vitrine
