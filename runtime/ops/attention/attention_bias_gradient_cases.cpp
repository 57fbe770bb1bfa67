#include <utility>

#include "runtime/check/cases.h"
#include "runtime/check/reference_matmul.h"
#include "runtime/ops/attention/attention_bias_gradient.h"
#include "runtime/ops/attention/attention_cases.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> attention_bias_gradient_cases() {
  std::vector<OpCase> cases;
  for (const AttentionCase& a : {biased_attentions[0], biased_attentions[1], dropped_bias}) {
    OpCase c;
    c.label = a.label();
    c.inputs = a.inputs(DType::f32);
    const reference::AttentionGradients gradients = a.add_gradient_inputs(c.inputs);
    c.expected = {reference::relative_bias_gradient(a.grid, gradients.scores, a.batch, a.heads)};
    a.add_extras(c.inputs);
    c.build = [a](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{attention_bias_gradient(graph, "g", ids[0], ids[1], ids[2], ids[3], ids[4], ids[5],
                                                 a.options(ids))};
    };
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace vitrine
