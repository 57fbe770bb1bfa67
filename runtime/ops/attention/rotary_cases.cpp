#include "runtime/check/cases.h"
#include "runtime/ops/attention/rotary.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> rotary_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const RotaryPairs pairs : {RotaryPairs::neighbours, RotaryPairs::halves}) {
      for (const uint64_t width : {6, 16}) {  // four columns at a time only of the second
        const RotaryOptions options{.width = width, .turned = 4, .heads = 6, .pairs = pairs};
        const HostTensor x = random_tensor({2, 5, 6 * width + 4}, dtype, 1, -2, 2);
        const HostTensor table = random_tensor({2, 3, 2, width / 2}, DType::f32, 2, -1, 1);
        cases.push_back(
            one_result("heads of " + std::to_string(width) +
                           (pairs == RotaryPairs::halves ? ", turned in halves" : ", turned in neighbours"),
                       {{x}, {table}},
                       reference::rotary(x.values, x.shape, table.values, table.shape,
                                         {width, 4, 6, pairs == RotaryPairs::halves, false}),
                       [=](Graph& graph, std::span<const ValueId> ids) {
                         return rotary(graph, "y", ids[0], ids[1], options);
                       }));
      }
    }
  }
  return cases;
}

}  // namespace vitrine
