#include "runtime/check/cases.h"
#include "runtime/ops/elementwise/gated_product.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> gated_product_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor x = random_tensor({5, 2 * 67}, dtype, 1, -3, 3);
    cases.push_back(one_result("SwiGLU", {{x}}, reference::gated_product(x.values, 67, Activation::silu),
                               [](Graph& graph, std::span<const ValueId> ids) {
                                 return gated_product(graph, "y", ids[0], Activation::silu);
                               }));
  }
  return cases;
}

}  // namespace vitrine
