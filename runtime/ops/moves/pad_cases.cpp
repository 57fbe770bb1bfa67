#include "runtime/check/cases.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/ops/moves/pad.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> pad_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor x = random_tensor({3, 5, 7}, dtype, 1);
    cases.push_back(exactly(one_result(
        "5 of 11 tokens", {{x}}, reference::pad(x.values, x.shape, 1, 4, 11),
        [](Graph& graph, std::span<const ValueId> ids) { return pad(graph, "y", ids[0], 1, 4, 11); })));
  }
  return cases;
}

}  // namespace vitrine
