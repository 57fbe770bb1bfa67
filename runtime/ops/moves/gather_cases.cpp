#include "runtime/check/cases.h"
#include "runtime/ops/moves/gather.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> gather_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor x = random_tensor({3, 5, 7}, dtype, 1);
    const HostTensor rows{{3}, DType::u32, {4, 0, 4}};
    cases.push_back(exactly(one_result(
        "rows 4, 0 and 4", {{x}, {rows}}, reference::gather(x.values, x.shape, rows.values),
        [](Graph& graph, std::span<const ValueId> ids) { return gather(graph, "y", ids[0], ids[1]); })));
  }
  return cases;
}

}  // namespace vitrine
