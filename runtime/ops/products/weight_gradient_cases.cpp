#include <tuple>
#include <utility>

#include "runtime/check/cases.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/ops/products/weight_gradient.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> weight_gradient_cases() {
  std::vector<OpCase> cases;
  // The last of whole chunks of rows, and of so few that there is none.
  for (const auto& [n, bias, rows] : {std::tuple<uint64_t, bool, uint64_t>{5, true, 1301},
                                      {8, true, 1301},
                                      {5, false, 1301},
                                      {8, false, 1301},
                                      {8, true, 1280},
                                      {8, false, 1280},
                                      {8, true, 29},
                                      {8, false, 29}}) {
    constexpr uint64_t groups = 3, k = 4;
    const HostTensor dy = random_tensor({rows, groups * n}, DType::f32, 1),
                     x = random_tensor({rows, groups * k}, DType::f32, 2);
    OpCase& c = cases.emplace_back();
    c.label = "3 groups of " + std::to_string(n) + " x 4" + (bias ? "" : ", no bias") + ", " +
              std::to_string(rows) + " rows";
    c.for_its_path = !bias || rows != 1301;
    c.inputs = {{dy}, {x}};
    c.expected = {reference::weight_gradient(dy.values, x.values, groups, n, k, rows)};
    if (bias) c.expected.push_back(reference::sum_rows(dy.values, groups * n));
    c.build = [bias](Graph& graph, std::span<const ValueId> ids) {
      const WeightGradient found =
          weight_gradient(graph, "y", ids[0], ids[1], {.groups = groups, .bias = bias});
      return bias ? std::vector{found.weight, found.bias} : std::vector{found.weight};
    };
  }
  return cases;
}

}  // namespace vitrine
