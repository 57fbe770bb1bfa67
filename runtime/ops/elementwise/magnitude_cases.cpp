#include <algorithm>
#include <cmath>

#include "runtime/check/cases.h"
#include "runtime/ops/elementwise/magnitude.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> magnitude_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor x = random_tensor({5, 67}, dtype, 1, -9, 7);
    double largest = 0;
    for (const double value : x.values) largest = std::max(largest, std::abs(value));
    cases.push_back(exactly(one_result(
        "the largest of 335", {{x}}, {largest},
        [](Graph& graph, std::span<const ValueId> ids) { return magnitude(graph, "y", ids[0]); })));
  }
  return cases;
}

}  // namespace vitrine
