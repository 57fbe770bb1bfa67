#include "runtime/check/cases.h"
#include "runtime/ops/elementwise/gated_product.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> gated_product_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t width : {67, 72}) {  // 16 bytes at a time only of the second
      const HostTensor x = random_tensor({5, 2 * width}, dtype, 1, -3, 3);
      cases.push_back(one_result("SwiGLU of " + x.shape.to_string(), {{x}},
                                 reference::gated_product(x.values, width, Activation::silu),
                                 [](Graph& graph, std::span<const ValueId> ids) {
                                   return gated_product(graph, "y", ids[0], Activation::silu);
                                 }));
    }
  }
  return cases;
}

}  // namespace vitrine
