#include "runtime/check/cases.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/ops/norms/kept_rows.h"
#include "runtime/ops/norms/softmax_gradient.h"

namespace vitrine {

using namespace cases;

namespace {

OpCase softmax_gradient_case(const Shape& shape, DType dtype) {
  const HostTensor dy = random_tensor(shape, dtype, 1), y = random_tensor(shape, dtype, 2, 0);
  return one_result("rows of " + std::to_string(shape[-1]), {{dy}, {y}},
                    reference::softmax_gradient(dy.values, y.values, shape[-1]),
                    [](Graph& graph, std::span<const ValueId> ids) {
                      return softmax_gradient(graph, "dx", ids[0], ids[1]);
                    });
}

}  // namespace

std::vector<OpCase> softmax_gradient_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t width : {7, 132}) cases.push_back(softmax_gradient_case({37, width}, dtype));
    for (const uint64_t width : kept_widths)
      cases.emplace_back(softmax_gradient_case({3, width}, dtype)).for_its_path = true;
  }
  return cases;
}

}  // namespace vitrine
