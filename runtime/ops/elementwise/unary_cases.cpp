#include "runtime/check/cases.h"
#include "runtime/ops/elementwise/unary.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> unary_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t width : {67, 72}) {  // fours and 16 bytes at a time only of the second
      const HostTensor x = random_tensor({5, width}, dtype, 1, -4, 4);
      for (const Activation activation : {Activation::gelu, Activation::gelu_tanh, Activation::gelu_quick,
                                          Activation::silu, Activation::tanh, Activation::relu}) {
        cases.push_back(one_result(std::string(name_of(activation)) + " of " + x.shape.to_string(), {{x}},
                                   reference::activate(activation, x.values),
                                   [activation](Graph& graph, std::span<const ValueId> ids) {
                                     return activate(graph, "y", ids[0], activation);
                                   }));
      }
      Values half = x.values;
      for (double& value : half) value *= 0.5;
      cases.push_back(one_result(
          "half of " + x.shape.to_string(), {{x}}, std::move(half),
          [](Graph& graph, std::span<const ValueId> ids) { return scale(graph, "y", ids[0], 0.5); }));
    }
  }
  return cases;
}

}  // namespace vitrine
