#include "runtime/check/cases.h"
#include "runtime/ops/elementwise/convert.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> convert_cases() {
  std::vector<OpCase> cases;
  for (const DType from : {DType::f32, DType::f16, DType::bf16}) {
    for (const DType to : {DType::f32, DType::f16, DType::bf16}) {
      if (from == to) continue;                // no dispatch
      for (const uint64_t width : {67, 72}) {  // 16 bytes at a time only of the second
        const HostTensor x = random_tensor({5, width}, from, 1, -300, 300);
        std::vector<double> expected;
        for (const double value : x.values) expected.push_back(reference::nearest(to, value));
        cases.push_back(exactly(one_result(
            std::string(name_of(from)) + " to " + std::string(name_of(to)) + " of " + x.shape.to_string(),
            {{x}}, std::move(expected),
            [to](Graph& graph, std::span<const ValueId> ids) { return convert(graph, "y", ids[0], to); })));
      }
    }
  }
  return cases;
}

}  // namespace vitrine
