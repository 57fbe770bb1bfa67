#include <utility>

#include "runtime/check/cases.h"
#include "runtime/ops/elementwise/dropout.h"
#include "runtime/ops/elementwise/random_mask.h"
#include "shaders/lib/step_state.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> dropout_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    // 16 bytes at a time only of the last.
    for (const auto& [width, group] : {std::pair<uint64_t, uint64_t>{35, 1}, {35, 35}, {40, 1}}) {
      const DropoutOptions options{.rate = 0.3, .stream = 2, .group = group};
      const HostTensor x = random_tensor({11, width}, dtype, 1);
      HostTensor step = filled({VITRINE_STEP_WORDS}, DType::u32, 0);
      step.values[VITRINE_STEP_SEED_LOW] = 7;
      step.values[VITRINE_STEP_SEED_HIGH] = 0x80000001;
      step.values[VITRINE_STEP_NUMBER] = 3;
      const RandomMask mask{.seed = 0x8000000100000007, .step = 3, .stream = 2, .rate = options.rate};
      std::vector<double> expected;
      for (size_t i = 0; i < x.values.size(); ++i) {
        expected.push_back(x.values[i] * mask.factor(static_cast<uint32_t>(i / group)));
      }
      cases.push_back(one_result("groups of " + std::to_string(group) + " in " + x.shape.to_string(),
                                 {{x}, {step}}, std::move(expected),
                                 [options](Graph& graph, std::span<const ValueId> ids) {
                                   return dropout(graph, "y", ids[0], ids[1], options);
                                 }));
    }
  }
  return cases;
}

}  // namespace vitrine
