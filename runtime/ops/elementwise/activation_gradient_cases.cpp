#include "runtime/check/op_case.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/ops/elementwise/activation_gradient.h"

namespace vitrine {
namespace {

using reference::HostTensor, reference::OpCase, reference::dtypes, reference::random_tensor;

}  // namespace

std::vector<OpCase> activation_gradient_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor dy = random_tensor({5, 67}, dtype, 1), x = random_tensor({5, 67}, dtype, 2, -4, 4);
    for (const Activation activation : {Activation::gelu, Activation::gelu_tanh, Activation::gelu_quick,
                                        Activation::silu, Activation::tanh}) {
      OpCase& c = cases.emplace_back();
      c.label = name_of(activation);
      c.inputs = {{dy}, {x}};
      c.expected = {reference::activation_gradient(activation, dy.values, x.values)};
      c.build = [activation](Graph& graph, std::span<const ValueId> ids) {
        return std::vector{activation_gradient(graph, "dx", ids[0], ids[1], activation)};
      };
    }
  }
  return cases;
}

}  // namespace vitrine
