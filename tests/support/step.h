// The input `step` as a training run would fill it.
#pragma once

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

}  // namespace vitrine::test
