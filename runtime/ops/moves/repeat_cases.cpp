#include "runtime/check/cases.h"
#include "runtime/ops/moves/repeat.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> repeat_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor x = random_tensor({3, 5, 7}, dtype, 1);
    std::vector<double> twice = x.values;
    twice.insert(twice.end(), x.values.begin(), x.values.end());
    cases.push_back(
        exactly(one_result("twice", {{x}}, std::move(twice), [](Graph& graph, std::span<const ValueId> ids) {
          return repeat(graph, "y", ids[0], 2);
        })));
  }
  return cases;
}

}  // namespace vitrine
