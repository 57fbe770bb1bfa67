#include "runtime/check/cases.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/ops/elementwise/gated_product_gradient.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> gated_product_gradient_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor dy = random_tensor({5, 67}, dtype, 1), x = random_tensor({5, 134}, dtype, 2, -3, 3);
    OpCase& c = cases.emplace_back();
    c.label = "SwiGLU";
    c.inputs = {{dy}, {x}};
    c.expected = {reference::gated_product_gradient(dy.values, x.values, 67, Activation::silu)};
    c.build = [](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{gated_product_gradient(graph, "dx", ids[0], ids[1], Activation::silu)};
    };
  }
  return cases;
}

}  // namespace vitrine
