#include "runtime/check/cases.h"
#include "runtime/ops/norms/softmax.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> softmax_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t width : {uint64_t{7}, uint64_t{132}}) {
      const HostTensor x = random_tensor({37, width}, dtype, 1, -5, 5);
      cases.push_back(
          one_result("rows of " + std::to_string(width), {{x}}, reference::softmax(x.values, width),
                     [](Graph& graph, std::span<const ValueId> ids) { return softmax(graph, "y", ids[0]); }));
    }
  }
  return cases;
}

std::vector<Sample> softmax_sample(const LoneNode& node) {
  const Shape& x = node.input(0).shape;
  const std::vector<uint64_t> rows = some_rows(x.rows());
  return {rows_sample(node, rows, x[-1], reference::softmax(rows_of(node, 0, rows, x[-1]), x[-1]))};
}

}  // namespace vitrine
