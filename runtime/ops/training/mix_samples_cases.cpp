#include <bit>

#include "runtime/check/cases.h"
#include "runtime/check/reference_recipes.h"
#include "runtime/ops/training/mix_samples.h"
#include "shaders/training/mix_samples.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> mix_samples_cases() {
  constexpr uint64_t samples = 5;
  const HostTensor x = random_tensor({samples, 3, 13, 11}, DType::f32, 1);
  HostTensor mixing = filled({samples, VITRINE_MIX_WORDS}, DType::u32, 0);
  for (uint64_t i = 0; i < samples; ++i) {
    double* words = mixing.values.data() + i * VITRINE_MIX_WORDS;
    // The odd ones are mixed, the others cut.
    words[VITRINE_MIX_PARTNER] = static_cast<double>(samples - 1 - i);
    words[VITRINE_MIX_OWN] = std::bit_cast<uint32_t>(i % 2 == 1 ? 0.7f : 1.0f);
    words[VITRINE_MIX_OTHER] = std::bit_cast<uint32_t>(i % 2 == 1 ? 0.3f : 0.0f);
    if (i % 2 == 1) continue;
    words[VITRINE_MIX_TOP] = static_cast<double>(i);
    words[VITRINE_MIX_BOTTOM] = static_cast<double>(i + 7);
    words[VITRINE_MIX_LEFT] = 3;
    words[VITRINE_MIX_RIGHT] = 11;
  }
  return {one_result(
      "5 samples", {{x}, {mixing}}, reference::mix_samples(x.values, x.shape, mixing.values),
      [](Graph& graph, std::span<const ValueId> ids) { return mix_samples(graph, "y", ids[0], ids[1]); })};
}

}  // namespace vitrine
