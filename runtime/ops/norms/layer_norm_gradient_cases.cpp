#include "runtime/check/cases.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/ops/norms/layer_norm_gradient.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> layer_norm_gradient_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t width : {uint64_t{7}, uint64_t{132}}) {
      const HostTensor dy = random_tensor({75, width}, dtype, 1),
                       x = random_tensor({75, width}, dtype, 2, -1, 3),
                       gamma = random_tensor({width}, DType::f32, 3);
      reference::LayerNormGradient expected =
          reference::layer_norm_gradient(dy.values, x.values, gamma.values, 1e-5);
      OpCase& c = cases.emplace_back();
      c.label = "rows of " + std::to_string(width);
      c.inputs = {{dy}, {x}, {gamma}};
      c.expected = {std::move(expected.dx), std::move(expected.dgamma), std::move(expected.dbeta)};
      c.build = [](Graph& graph, std::span<const ValueId> ids) {
        const auto [dx, dgamma, dbeta] = layer_norm_gradient(graph, "dx", ids[0], ids[1], ids[2], 1e-5, true);
        return std::vector{dx, dgamma, dbeta};
      };
    }
  }
  // With the gradient that goes past the norm, as in a block.
  for (const uint64_t width : {uint64_t{7}, uint64_t{132}}) {
    const HostTensor dy = random_tensor({75, width}, DType::f32, 1),
                     x = random_tensor({75, width}, DType::f32, 2, -1, 3),
                     gamma = random_tensor({width}, DType::f32, 3),
                     residual = random_tensor({75, width}, DType::f32, 4);
    reference::LayerNormGradient expected =
        reference::layer_norm_gradient(dy.values, x.values, gamma.values, 1e-5);
    for (size_t i = 0; i < expected.dx.size(); ++i) expected.dx[i] += residual.values[i];
    OpCase& c = cases.emplace_back();
    c.label = "rows of " + std::to_string(width) + ", a residual";
    c.for_its_path = true;
    c.inputs = {{dy}, {x}, {gamma}, {residual}};
    c.expected = {std::move(expected.dx), std::move(expected.dgamma), std::move(expected.dbeta)};
    c.build = [](Graph& graph, std::span<const ValueId> ids) {
      const auto [dx, dgamma, dbeta] =
          layer_norm_gradient(graph, "dx", ids[0], ids[1], ids[2], 1e-5, true, ids[3]);
      return std::vector{dx, dgamma, dbeta};
    };
  }
  return cases;
}

}  // namespace vitrine
