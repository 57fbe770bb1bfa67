#include "runtime/check/op_case.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/ops/products/weight_gradient.h"

namespace vitrine {
namespace {

using reference::HostTensor, reference::OpCase, reference::random_tensor;

}  // namespace

std::vector<OpCase> weight_gradient_cases() {
  std::vector<OpCase> cases;
  for (const uint64_t n : {5, 8}) {
    constexpr uint64_t rows = 1301, groups = 3, k = 4;
    const HostTensor dy = random_tensor({rows, groups * n}, DType::f32, 1),
                     x = random_tensor({rows, groups * k}, DType::f32, 2);
    OpCase& c = cases.emplace_back();
    c.label = "3 groups of " + std::to_string(n) + " x 4";
    c.inputs = {{dy}, {x}};
    c.expected = {reference::weight_gradient(dy.values, x.values, groups, n, k, rows),
                  reference::sum_rows(dy.values, groups * n)};
    c.build = [](Graph& graph, std::span<const ValueId> ids) {
      const WeightGradient found =
          weight_gradient(graph, "y", ids[0], ids[1], {.groups = groups, .bias = true});
      return std::vector{found.weight, found.bias};
    };
  }
  return cases;
}

}  // namespace vitrine
