#include "runtime/check/cases.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/ops/tokens/pool.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> pool_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor tokens = random_tensor({3, 17, 67}, dtype, 1);
    cases.push_back(one_result(
        "the mean of 16 tokens", {{tokens}}, reference::pool(tokens.values, tokens.shape, 1, 16),
        [](Graph& graph, std::span<const ValueId> ids) { return pool_mean(graph, "y", ids[0], 1, 16); }));
  }
  return cases;
}

std::vector<OpCase> pool_gradient_cases() {
  const HostTensor dy = random_tensor({5, 7}, DType::f32, 1);
  return {one_result("the mean of 3", {{dy}}, reference::pool_gradient(dy.values, 7, 11, 4, 3),
                     [](Graph& graph, std::span<const ValueId> ids) {
                       return pool_gradient(graph, "y", ids[0], 11, 4, 3);
                     })};
}

}  // namespace vitrine
