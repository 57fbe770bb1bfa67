#include "runtime/check/cases.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/ops/tokens/assemble_tokens_gradient.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> assemble_tokens_gradient_cases() {
  std::vector<OpCase> cases;
  for (const uint64_t dims : {7, 12}) {
    const HostTensor dy = random_tensor({19, 11, dims}, DType::f32, 1);
    const auto expected = reference::assemble_tokens_gradient(dy.values, dy.shape, {true, true, 2, 9});
    OpCase& c = cases.emplace_back();
    c.label = "all kinds of " + std::to_string(dims);
    c.inputs = {{dy}};
    c.expected = {expected.patches, expected.class_token, expected.distillation_token, expected.registers,
                  expected.positions};
    c.build = [](Graph& graph, std::span<const ValueId> ids) {
      const TokenGradients found =
          assemble_tokens_gradient(graph, "y", ids[0], {true, true, 2, 9}, {true, true, true, true, true});
      return std::vector{found.patches, found.class_token, found.distillation_token, found.registers,
                         found.positions};
    };
  }
  return cases;
}

}  // namespace vitrine
