#include "runtime/check/cases.h"
#include "runtime/ops/norms/kept_rows.h"
#include "runtime/ops/norms/softmax.h"

namespace vitrine {

using namespace cases;

namespace {

OpCase softmax_case(const Shape& shape, DType dtype) {
  const HostTensor x = random_tensor(shape, dtype, 1, -5, 5);
  return one_result("rows of " + std::to_string(shape[-1]), {{x}}, reference::softmax(x.values, shape[-1]),
                    [](Graph& graph, std::span<const ValueId> ids) { return softmax(graph, "y", ids[0]); });
}

}  // namespace

std::vector<OpCase> softmax_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t width : {7, 132}) cases.push_back(softmax_case({37, width}, dtype));
    for (const uint64_t width : kept_widths)
      cases.emplace_back(softmax_case({3, width}, dtype)).for_its_path = true;
  }
  return cases;
}

std::vector<Sample> softmax_sample(const LoneNode& node) {
  const Shape& x = node.input(0).shape;
  const std::vector<uint64_t> rows = some_rows(x.rows());
  return {rows_sample(node, rows, x[-1], reference::softmax(rows_of(node, 0, rows, x[-1]), x[-1]))};
}

}  // namespace vitrine
