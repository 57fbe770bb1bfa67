#include <utility>

#include "runtime/check/cases.h"
#include "runtime/check/reference_matmul.h"
#include "runtime/ops/products/grouped_matmul.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> grouped_matmul_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const auto& [n, k] : {std::pair<uint64_t, uint64_t>{5, 7}, {6, 10}}) {
      constexpr uint64_t rows = 11, groups = 3;
      OpCase& c = cases.emplace_back();
      c.label = "3 groups of " + std::to_string(n) + " x " + std::to_string(k);
      c.inputs = {{random_tensor({rows, groups * k}, dtype, 1)},
                  {random_tensor({groups, n, k}, dtype, 2), Role::constant},
                  {random_tensor({groups, n}, DType::f32, 3), Role::constant}};
      c.expected = {reference::grouped_matmul(c.inputs[0].tensor.values, c.inputs[1].tensor.values,
                                              c.inputs[2].tensor.values, groups, n, k)};
      c.build = [](Graph& graph, std::span<const ValueId> ids) {
        return std::vector{grouped_matmul(graph, "y", ids[0], ids[1], ids[2])};
      };
    }
  }
  return cases;
}

}  // namespace vitrine
