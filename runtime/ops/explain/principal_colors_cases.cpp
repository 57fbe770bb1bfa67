#include <cmath>
#include <utility>

#include "runtime/check/cases.h"
#include "runtime/check/reference_heat.h"
#include "runtime/ops/explain/principal_colors.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> principal_colors_cases() {
  std::vector<OpCase> cases;
  for (const auto& [count, width] : {std::pair<uint64_t, uint64_t>{29, 11}, {11, 29}}) {
    constexpr uint64_t first = 2;
    OpCase& c = cases.emplace_back();
    c.label = std::to_string(count) + " patches of " + std::to_string(width);
    // Columns that differ in how far they spread: their components do, too.
    HostTensor x = random_tensor({first + count, width}, DType::f32, 5);
    for (size_t i = 0; i < x.values.size(); ++i)
      x.values[i] = round_to(DType::f32, 3 + x.values[i] * std::pow(0.7, static_cast<double>(i % width)));
    c.inputs = {{x}};
    c.expected = {reference::principal_colors(x.values, width, first, count)};
    c.pixels = true;
    c.build = [count = count](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{principal_colors(graph, "y", ids[0], first, count)};
    };
  }
  return cases;
}

}  // namespace vitrine
