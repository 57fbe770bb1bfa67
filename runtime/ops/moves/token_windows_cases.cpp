#include "runtime/check/cases.h"
#include "runtime/ops/moves/reference_grid.h"
#include "runtime/ops/moves/token_windows.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> token_windows_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t columns : {13, 24}) {  // 16 bytes at a time only of the second
      const TokenGrid grid{7, 5, 3};
      const HostTensor x = random_tensor({2, grid.height * grid.width, columns}, dtype, 1, -3, 3);
      cases.push_back(one_result("partition, " + std::to_string(columns) + " columns", {{x}},
                                 reference::partition_windows(x.values, 2, columns, grid),
                                 [=](Graph& graph, std::span<const ValueId> ids) {
                                   return partition_windows(graph, "y", ids[0], grid);
                                 }));
      const HostTensor windows = random_tensor({2 * grid.windows(), 9, columns}, dtype, 2, -3, 3);
      cases.push_back(one_result("merge, " + std::to_string(columns) + " columns", {{windows}},
                                 reference::merge_windows(windows.values, 2, columns, grid),
                                 [=](Graph& graph, std::span<const ValueId> ids) {
                                   return merge_windows(graph, "y", ids[0], grid);
                                 }));
    }
  }
  return cases;
}

}  // namespace vitrine
