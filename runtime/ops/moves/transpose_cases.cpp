#include "runtime/check/cases.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/ops/moves/transpose.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> transpose_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor x = random_tensor({3, 35, 37}, dtype, 1);
    OpCase& c = cases.emplace_back();
    c.label = "three matrices";
    c.inputs = {{x}};
    c.expected = {reference::transpose(x.values, 35, 37)};
    c.exact = true;
    c.build = [](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{transpose(graph, "y", ids[0])};
    };
  }
  return cases;
}

}  // namespace vitrine
