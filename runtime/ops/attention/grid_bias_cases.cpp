#include "runtime/check/cases.h"
#include "runtime/ops/attention/grid_bias.h"
#include "runtime/ops/moves/reference_grid.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> grid_bias_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const GridBiasOptions& o : {GridBiasOptions{3, 16, 5, 5, 7}, GridBiasOptions{2, 13, 0, 6, 3}}) {
      const HostTensor q =
          random_tensor({2, o.height * o.width, o.q_offset + o.heads * o.key_width + 3}, dtype, 1, -2, 2);
      const HostTensor rows = random_tensor({2 * o.height - 1, o.key_width}, DType::f32, 2, -1, 1);
      const HostTensor columns = random_tensor({2 * o.width - 1, o.key_width}, DType::f32, 3, -1, 1);
      cases.push_back(one_result("of " + std::to_string(o.height) + " x " + std::to_string(o.width),
                                 {{q}, {rows}, {columns}},
                                 reference::grid_bias(q.values, q.shape, rows.values, columns.values, o),
                                 [=](Graph& graph, std::span<const ValueId> ids) {
                                   return grid_bias(graph, "y", ids[0], ids[1], ids[2], o);
                                 }));
    }
  }
  return cases;
}

}  // namespace vitrine
