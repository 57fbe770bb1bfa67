#include "runtime/check/cases.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/ops/moves/sum_rows.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> sum_rows_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor a = random_tensor({133, 7}, dtype, 1), b = random_tensor({133, 7}, dtype, 2);
    OpCase& sums = cases.emplace_back();
    sums.label = "133 rows";
    sums.inputs = {{a}};
    sums.expected = {reference::sum_rows(a.values, 7)};
    sums.build = [](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{sum_rows(graph, "y", ids[0])};
    };
    OpCase& products = cases.emplace_back();
    products.label = "133 rows of products";
    products.inputs = {{a}, {b}};
    products.expected = {reference::sum_rows(reference::multiply(a.values, b.values), 7)};
    products.build = [](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{sum_products(graph, "y", ids[0], ids[1])};
    };
  }
  return cases;
}

}  // namespace vitrine
