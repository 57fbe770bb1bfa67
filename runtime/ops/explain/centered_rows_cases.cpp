#include "runtime/check/cases.h"
#include "runtime/ops/explain/centered_rows.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> centered_rows_cases() {
  std::vector<OpCase> cases;
  for (const bool transposed : {false, true}) {
    constexpr uint64_t rows = 41, width = 7, first = 3, count = 37;
    OpCase& c = cases.emplace_back();
    c.label = transposed ? "37 of 41 rows, transposed" : "37 of 41 rows";
    const HostTensor x = random_tensor({1, rows, width}, DType::f32, 1, 1, 5);
    std::vector<double> means(width), left(count * width);
    for (uint64_t i = 0; i < count * width; ++i) means[i % width] += x.values[first * width + i] / count;
    for (uint64_t i = 0; i < count * width; ++i)
      left[transposed ? i % width * count + i / width : i] = x.values[first * width + i] - means[i % width];
    c.inputs = {{x}};
    c.expected = {left, means};
    c.build = [transposed](Graph& graph, std::span<const ValueId> ids) {
      const CenteredRows result = centered_rows(graph, "y", ids[0], first, count, transposed);
      return std::vector{result.rows, result.means};
    };
  }
  return cases;
}

}  // namespace vitrine
