#include "runtime/check/cases.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/ops/elementwise/gated_product_gradient.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> gated_product_gradient_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t width : {67, 72}) {  // 16 bytes at a time only of the second
      const HostTensor dy = random_tensor({5, width}, dtype, 1),
                       x = random_tensor({5, 2 * width}, dtype, 2, -3, 3);
      cases.push_back(
          one_result("SwiGLU of " + x.shape.to_string(), {{dy}, {x}},
                     reference::gated_product_gradient(dy.values, x.values, width, Activation::silu),
                     [](Graph& graph, std::span<const ValueId> ids) {
                       return gated_product_gradient(graph, "dx", ids[0], ids[1], Activation::silu);
                     }));
    }
  }
  return cases;
}

}  // namespace vitrine
