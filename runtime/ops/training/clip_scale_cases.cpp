#include "runtime/check/cases.h"
#include "runtime/check/reference_training.h"
#include "runtime/ops/moves/slice.h"
#include "runtime/ops/training/clip_scale.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> clip_scale_cases() {
  std::vector<OpCase> cases;
  for (const uint64_t count : {1021, 70001}) {
    const HostTensor x = random_tensor({count}, DType::f32, 1);
    const reference::ClipScale expected = reference::clip_scale(x.values, 0.5);
    OpCase c{.label = std::to_string(count) + " elements", .inputs = {{x}}};
    c.expected = {{expected.scale}, {expected.norm}};
    c.build = [](Graph& graph, std::span<const ValueId> ids) {
      const ValueId both = clip_scale(graph, "y", ids[0], 0.5);
      return std::vector{slice(graph, "scale", both, 0, 0, 1), slice(graph, "norm", both, 0, 1, 2)};
    };
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace vitrine
