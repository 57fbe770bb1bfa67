#include "runtime/check/cases.h"
#include "runtime/ops/norms/layer_norm.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> layer_norm_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t width : {uint64_t{7}, uint64_t{132}}) {
      const HostTensor x = random_tensor({37, width}, dtype, 1, -1, 3),
                       gamma = random_tensor({width}, DType::f32, 2),
                       beta = random_tensor({width}, DType::f32, 3);
      cases.push_back(one_result("rows of " + std::to_string(width),
                                 {{x}, {gamma, Role::constant}, {beta, Role::constant}},
                                 reference::layer_norm(x.values, gamma.values, beta.values, 1e-6),
                                 [](Graph& graph, std::span<const ValueId> ids) {
                                   return layer_norm(graph, "y", ids[0], ids[1], ids[2]);
                                 }));
    }
  }
  return cases;
}

std::vector<Sample> layer_norm_sample(const LoneNode& node) {
  const Shape& x = node.input(0).shape;
  const std::vector<uint64_t> rows = some_rows(x.rows());
  return {rows_sample(node, rows, x[-1],
                      reference::layer_norm(rows_of(node, 0, rows, x[-1]), node.values(1), node.values(2),
                                            node.node().attributes.number("eps")))};
}

}  // namespace vitrine
