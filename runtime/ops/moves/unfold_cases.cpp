#include "runtime/check/cases.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/ops/moves/unfold.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> unfold_cases() {
  std::vector<OpCase> cases;
  for (const uint64_t width : {4, 5}) {
    const HostTensor image = random_tensor({2, 3, 10, 14}, DType::f32, 1);
    cases.push_back(exactly(one_result("patches " + std::to_string(width) + " wide", {{image}},
                                       reference::unfold(image.values, image.shape, 3, width),
                                       [width](Graph& graph, std::span<const ValueId> ids) {
                                         return unfold(graph, "y", ids[0], {3, width});
                                       })));
  }
  return cases;
}

std::vector<OpCase> fold_cases() {
  const HostTensor rows = random_tensor({2, 9, 36}, DType::f32, 1);
  return {exactly(one_result(
      "patches of 3 x 4", {{rows}}, reference::fold(rows.values, {2, 3, 10, 14}, 3, 4),
      [](Graph& graph, std::span<const ValueId> ids) { return fold(graph, "y", ids[0], 10, 14, {3, 4}); }))};
}

}  // namespace vitrine
