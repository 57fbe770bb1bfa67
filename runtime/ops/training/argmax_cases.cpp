#include "runtime/check/cases.h"
#include "runtime/check/reference_recipes.h"
#include "runtime/ops/training/argmax.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> argmax_cases() {
  HostTensor x = random_tensor({37, 131}, DType::f32, 1);
  x.values[130] = x.values[17] = 2;  // two equal ones
  x.values[131 + 5] = -0.0;          // and two zeros above what is negative
  for (uint64_t c = 0; c < 131; ++c) {
    if (c != 5) x.values[131 + c] = c == 90 ? 0.0 : -1 - x.values[c] * x.values[c];
  }
  return {exactly(
      one_result("37 rows", {{x}}, reference::argmax(x.values, 131),
                 [](Graph& graph, std::span<const ValueId> ids) { return argmax(graph, "y", ids[0]); }))};
}

}  // namespace vitrine
