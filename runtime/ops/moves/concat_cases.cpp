#include "runtime/check/cases.h"
#include "runtime/ops/moves/concat.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> concat_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor x = random_tensor({3, 5, 7}, dtype, 1);
    const HostTensor more = random_tensor({3, 2, 7}, dtype, 2);
    cases.push_back(exactly(one_result(
        "5 and 2 rows", {{x}, {more}}, reference::concat({x.values, more.values}, {x.shape, more.shape}, 1),
        [](Graph& graph, std::span<const ValueId> ids) { return concat(graph, "y", {ids[0], ids[1]}, 1); })));
  }
  return cases;
}

}  // namespace vitrine
