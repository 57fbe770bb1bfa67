#include "runtime/ops/explain/heat_cases.h"

#include "runtime/check/cases.h"
#include "runtime/check/reference_heat.h"
#include "runtime/ops/explain/heat.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> heat_cases() {
  std::vector<OpCase> cases;
  constexpr uint64_t maps = 3, rows = 5, first = 2, height = 4, width = 7,
                     tokens = first + height * width + 1;
  const HostTensor stored = random_tensor({maps, rows, tokens}, DType::f32, 1, -1, 3);
  for (const bool with_mean : {false, true}) {
    constexpr uint64_t row = 3;
    OpCase& c = cases.emplace_back();
    c.label = with_mean ? "3 maps and their mean" : "3 maps";
    c.inputs = {{stored}, {some_choice(row)}, {some_colors()}};
    std::vector<double> numbers;
    for (uint64_t map = 0; map < maps + with_mean; ++map) {
      for (uint64_t i = 0; i < height * width; ++i) {
        const auto at = [&](uint64_t m) { return stored.values[(m * rows + row) * tokens + first + i]; };
        numbers.push_back(map < maps ? at(map) : (at(0) + at(1) + at(2)) / 3);
      }
    }
    c.expected = {reference::heat_pixels(numbers, maps + with_mean, height, width, c.inputs[2].tensor.values),
                  numbers};
    c.pixels = true;
    c.build = [with_mean](Graph& graph, std::span<const ValueId> ids) {
      const HeatResult result = heat(graph, "y", ids[0], ids[1], ids[2],
                                     {.first = first, .height = height, .width = width}, with_mean);
      return std::vector{result.pixels, result.numbers};
    };
  }
  return cases;
}

}  // namespace vitrine
