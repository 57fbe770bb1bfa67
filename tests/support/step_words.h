// The words of the graph input `step` (shaders/lib/step_state.h), as the host fills them in.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "shaders/lib/step_state.h"
#include "tests/support/op_test.h"

namespace vitrine::test {

// t is the number of the update, counted from 1.
inline std::array<uint32_t, VITRINE_STEP_WORDS> step_words(double rate, uint64_t t, double beta1 = 0,
                                                           double beta2 = 0) {
  const auto bits = [](double value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); };
  std::array<uint32_t, VITRINE_STEP_WORDS> words{};
  words[VITRINE_STEP_NUMBER] = static_cast<uint32_t>(t);
  words[VITRINE_STEP_RATE] = bits(rate);
  words[VITRINE_STEP_MOMENT1] = bits(1 / (1 - std::pow(beta1, t)));
  words[VITRINE_STEP_MOMENT2] = bits(1 / (1 - std::pow(beta2, t)));
  return words;
}

inline HostTensor as_tensor(const std::array<uint32_t, VITRINE_STEP_WORDS>& words) {
  return {{VITRINE_STEP_WORDS}, DType::u32, {words.begin(), words.end()}};
}

}  // namespace vitrine::test
