#include <utility>

#include "runtime/check/cases.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/check/reference_matmul.h"
#include "runtime/ops/products/grouped_matmul.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> grouped_matmul_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const auto& [n, k] : {std::pair<uint64_t, uint64_t>{5, 7}, {6, 10}}) {
      constexpr uint64_t rows = 11, groups = 3;
      OpCase& c = cases.emplace_back();
      c.label = "3 groups of " + std::to_string(n) + " x " + std::to_string(k);
      c.inputs = {{random_tensor({rows, groups * k}, dtype, 1)},
                  {random_tensor({groups, n, k}, dtype, 2), Role::constant},
                  {random_tensor({groups, n}, DType::f32, 3), Role::constant}};
      c.expected = {reference::grouped_matmul(c.inputs[0].tensor.values, c.inputs[1].tensor.values,
                                              c.inputs[2].tensor.values, groups, n, k)};
      c.build = [](Graph& graph, std::span<const ValueId> ids) {
        return std::vector{grouped_matmul(graph, "y", ids[0], ids[1], ids[2])};
      };
    }
  }
  // What a training takes to x: the other way through the weights, summed over the sets.
  for (const auto& [n, k] : {std::pair<uint64_t, uint64_t>{5, 7}, {4, 4}}) {
    constexpr uint64_t rows = 11, groups = 6, sets = 3, slices = groups / sets;
    const HostTensor dy = random_tensor({rows, groups * n}, DType::f32, 4),
                     weight = random_tensor({groups, n, k}, DType::f32, 5);
    const Values each = reference::grouped_matmul(dy.values, reference::transpose(weight.values, n, k),
                                                  Values(groups * k), groups, k, n);
    Values sums(rows * slices * k);
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t i = 0; i < groups * k; ++i) {
        sums[row * slices * k + i % (slices * k)] += each[row * groups * k + i];
      }
    }
    OpCase& c = cases.emplace_back();
    c.label = "6 groups of " + std::to_string(n) + " x " + std::to_string(k) + ", turned";
    c.for_its_path = true;
    c.inputs = {{dy}, {weight}};
    c.expected = {std::move(sums)};
    c.build = [](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{grouped_matmul_turned(graph, "y", ids[0], ids[1], sets)};
    };
  }
  return cases;
}

}  // namespace vitrine
