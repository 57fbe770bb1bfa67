#include "runtime/check/cases.h"
#include "runtime/ops/moves/slice.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> slice_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor x = random_tensor({3, 5, 7}, dtype, 1);
    cases.push_back(exactly(one_result(
        "rows 1 to 4", {{x}}, reference::slice(x.values, x.shape, 1, 1, 4),
        [](Graph& graph, std::span<const ValueId> ids) { return slice(graph, "y", ids[0], 1, 1, 4); })));
  }
  return cases;
}

}  // namespace vitrine
