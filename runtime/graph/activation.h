// The activation functions that operators can apply: on their own (activate), gated (gated_product)
// or fused behind a matrix product (matmul).
#pragma once

#include <cstdint>
#include <string_view>

#include "shaders/lib/activation.h"

namespace vitrine {

enum class Activation : uint8_t {
  none = VITRINE_ACTIVATION_NONE,
  gelu = VITRINE_ACTIVATION_GELU,              // x Φ(x), through erf
  gelu_tanh = VITRINE_ACTIVATION_GELU_TANH,    // its tanh approximation
  gelu_quick = VITRINE_ACTIVATION_GELU_QUICK,  // x σ(1.702 x)
  silu = VITRINE_ACTIVATION_SILU,              // x σ(x)
  tanh = VITRINE_ACTIVATION_TANH,
  relu = VITRINE_ACTIVATION_RELU,  // max(x, 0)
};

std::string_view name_of(Activation activation);

}  // namespace vitrine
