#include "runtime/check/cases.h"
#include "runtime/ops/elementwise/binary.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> binary_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t width : {67, 72}) {  // fours and 16 bytes at a time only of the second
      const HostTensor a = random_tensor({5, width}, dtype, 1), b = random_tensor({5, width}, DType::f32, 2);
      const std::string of = " of " + a.shape.to_string();
      cases.push_back(one_result(
          "sum" + of, {{a}, {b}}, reference::add(a.values, b.values),
          [](Graph& graph, std::span<const ValueId> ids) { return add(graph, "y", ids[0], ids[1]); }));
      cases.push_back(one_result(
          "product" + of, {{a}, {a}}, reference::multiply(a.values, a.values),
          [](Graph& graph, std::span<const ValueId> ids) { return multiply(graph, "y", ids[0], ids[1]); }));
      reference::Values mixed = a.values;
      for (size_t i = 0; i < mixed.size(); ++i) mixed[i] += 0.25 * (b.values[i] - mixed[i]);
      cases.push_back(one_result(
          "mix" + of, {{a}, {b}}, mixed,
          [](Graph& graph, std::span<const ValueId> ids) { return mix(graph, "y", ids[0], ids[1], 0.25); }));
    }
  }
  return cases;
}

}  // namespace vitrine
