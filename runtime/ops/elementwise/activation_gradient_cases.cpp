#include "runtime/check/cases.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/ops/elementwise/activation_gradient.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> activation_gradient_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t width : {67, 72}) {  // fours and 16 bytes at a time only of the second
      const HostTensor dy = random_tensor({5, width}, dtype, 1),
                       x = random_tensor({5, width}, dtype, 2, -4, 4);
      for (const Activation activation : {Activation::gelu, Activation::gelu_tanh, Activation::gelu_quick,
                                          Activation::silu, Activation::tanh, Activation::relu}) {
        cases.push_back(one_result(std::string(name_of(activation)) + " of " + x.shape.to_string(),
                                   {{dy}, {x}},
                                   reference::activation_gradient(activation, dy.values, x.values),
                                   [activation](Graph& graph, std::span<const ValueId> ids) {
                                     return activation_gradient(graph, "dx", ids[0], ids[1], activation);
                                   }));
      }
    }
  }
  return cases;
}

}  // namespace vitrine
