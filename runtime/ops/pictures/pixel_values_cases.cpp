#include "runtime/check/cases.h"
#include "runtime/ops/pictures/pixel_values.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> pixel_values_cases() {
  const HostTensor values = random_tensor({3, 256}, DType::f32, 1);
  HostTensor pixels{{2, 3, 5}, DType::u32, {}};
  for (const double value : random_tensor(pixels.shape, DType::u32, 2, 0, 0xffffffff).values)
    pixels.values.push_back(value);
  std::vector<double> expected;
  for (uint64_t b = 0; b < 2; ++b) {
    for (uint64_t channel = 0; channel < 3; ++channel) {
      for (uint64_t i = 0; i < 15; ++i) {
        const auto pixel = static_cast<uint32_t>(pixels.values[b * 15 + i]);
        expected.push_back(values.values[channel * 256 + (pixel >> (8 * channel) & 255)]);
      }
    }
  }
  return {exactly(one_result(
      "3 channels", {{pixels}, {values, Role::constant}}, std::move(expected),
      [](Graph& graph, std::span<const ValueId> ids) { return pixel_values(graph, "y", ids[0], ids[1]); }))};
}

}  // namespace vitrine
