// What the cases of the optimisers share.
#pragma once

#include <bit>
#include <cstdint>

#include "runtime/check/op_case.h"
#include "shaders/lib/step_state.h"

namespace vitrine::flat_update_case {

constexpr uint64_t elements = 1021, decayed = 510;  // neither is a multiple of four
constexpr double rate = 0.1;

inline reference::HostTensor vector(uint64_t seed, double low) {
  return reference::random_tensor({elements}, DType::f32, seed, low, 1);
}

inline reference::HostTensor first_step(double beta1, double beta2) {
  const auto bits = [](double value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); };
  reference::HostTensor step = reference::filled({VITRINE_STEP_WORDS}, DType::u32, 0);
  step.values[VITRINE_STEP_RATE] = bits(rate);
  step.values[VITRINE_STEP_MOMENT1] = bits(1 / (1 - beta1));
  step.values[VITRINE_STEP_MOMENT2] = bits(1 / (1 - beta2));
  return step;
}

// What clipping gives: the factor of the gradients, and their norm.
inline reference::HostTensor gradient_scale() { return {{2}, DType::f32, {0.625, 3}}; }
inline reference::HostTensor scaled(reference::HostTensor gradient, bool by_scale) {
  if (by_scale) {
    for (double& value : gradient.values) value *= gradient_scale().values[0];
  }
  return gradient;
}

}  // namespace vitrine::flat_update_case
