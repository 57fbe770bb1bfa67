#include "runtime/check/cases.h"
#include "runtime/ops/moves/reshape.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> reshape_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor x = random_tensor({7, 3, 5, 4}, dtype, 1);
    cases.push_back(exactly(one_result(
        "a patch embedding's weight", {{x}}, x.values,
        [](Graph& graph, std::span<const ValueId> ids) { return reshape(graph, "y", ids[0], {7, 60}); })));
  }
  return cases;
}

}  // namespace vitrine
