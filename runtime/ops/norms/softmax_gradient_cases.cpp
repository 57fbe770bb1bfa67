#include "runtime/check/cases.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/ops/norms/softmax_gradient.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> softmax_gradient_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t width : {uint64_t{7}, uint64_t{132}}) {
      const HostTensor dy = random_tensor({37, width}, dtype, 1), y = random_tensor({37, width}, dtype, 2, 0);
      OpCase& c = cases.emplace_back();
      c.label = "rows of " + std::to_string(width);
      c.inputs = {{dy}, {y}};
      c.expected = {reference::softmax_gradient(dy.values, y.values, width)};
      c.build = [](Graph& graph, std::span<const ValueId> ids) {
        return std::vector{softmax_gradient(graph, "dx", ids[0], ids[1])};
      };
    }
  }
  return cases;
}

}  // namespace vitrine
