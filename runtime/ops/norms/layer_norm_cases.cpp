#include "runtime/check/cases.h"
#include "runtime/ops/norms/kept_rows.h"
#include "runtime/ops/norms/layer_norm.h"

namespace vitrine {

using namespace cases;

namespace {

OpCase layer_norm_case(const Shape& shape, DType in, DType out, bool rms = false) {
  const Shape row{shape[-1]};
  const HostTensor x = random_tensor(shape, in, 1, -1, 3), gamma = random_tensor(row, DType::f32, 2),
                   beta = random_tensor(row, DType::f32, 3);
  if (rms) {
    return one_result("rows of " + std::to_string(shape[-1]) + ", by their root mean square",
                      {{x}, {gamma, Role::constant}}, reference::layer_norm(x.values, gamma.values, {}, 1e-6),
                      [out](Graph& graph, std::span<const ValueId> ids) {
                        return layer_norm(graph, "y", ids[0], ids[1], {}, {.out = out, .rms = true});
                      });
  }
  return one_result("rows of " + std::to_string(shape[-1]),
                    {{x}, {gamma, Role::constant}, {beta, Role::constant}},
                    reference::layer_norm(x.values, gamma.values, beta.values, 1e-6),
                    [out](Graph& graph, std::span<const ValueId> ids) {
                      return layer_norm(graph, "y", ids[0], ids[1], ids[2], {.out = out});
                    });
}

}  // namespace

std::vector<OpCase> layer_norm_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t width : {7, 132}) {
      for (const bool rms : {false, true}) cases.push_back(layer_norm_case({37, width}, dtype, dtype, rms));
    }
  }
  for (const DType in : dtypes) {
    for (const DType out : dtypes) {
      for (const uint64_t width : kept_widths)
        cases.emplace_back(layer_norm_case({3, width}, in, out)).for_its_path = true;
    }
  }
  return cases;
}

std::vector<Sample> layer_norm_sample(const LoneNode& node) {
  const Shape& x = node.input(0).shape;
  const std::vector<uint64_t> rows = some_rows(x.rows());
  return {rows_sample(node, rows, x[-1],
                      reference::layer_norm(rows_of(node, 0, rows, x[-1]), node.values(1),
                                            node.node().attributes.flag("rms") ? Values{} : node.values(2),
                                            node.node().attributes.number("eps")))};
}

}  // namespace vitrine
