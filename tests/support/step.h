// The input `step` as a training run would fill it.
#pragma once

#include <bit>
#include <cmath>

#include "shaders/lib/step_state.h"
#include "tests/support/op_test.h"

namespace vitrine::test {

inline HostTensor step_tensor(uint64_t seed, uint32_t number) {
  HostTensor step{{VITRINE_STEP_WORDS}, DType::u32, std::vector<double>(VITRINE_STEP_WORDS)};
  step.values[VITRINE_STEP_SEED_LOW] = static_cast<double>(seed & 0xffffffff);
  step.values[VITRINE_STEP_SEED_HIGH] = static_cast<double>(seed >> 32);
  step.values[VITRINE_STEP_NUMBER] = number;
  return step;
}

// For optimisers: t is the number of the update, counted from 1.
inline HostTensor update_tensor(double rate, uint64_t t, double beta1 = 0, double beta2 = 0) {
  HostTensor step = step_tensor(0, static_cast<uint32_t>(t));
  const auto bits = [](double value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); };
  step.values[VITRINE_STEP_RATE] = bits(rate);
  step.values[VITRINE_STEP_MOMENT1] = bits(1 / (1 - std::pow(beta1, t)));
  step.values[VITRINE_STEP_MOMENT2] = bits(1 / (1 - std::pow(beta2, t)));
  return step;
}

}  // namespace vitrine::test
