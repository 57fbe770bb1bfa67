#include "runtime/check/op_case.h"
#include "runtime/check/reference.h"
#include "runtime/ops/elementwise/gated_product.h"

namespace vitrine {
namespace {

using reference::HostTensor, reference::OpCase, reference::dtypes, reference::one_result,
    reference::random_tensor;

}  // namespace

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
