// Seeded random weights. Every number is a function of seed, parameter name and element, so that
// neither the order in which parameters are made nor the number of threads changes a bit.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "model/vit/parameters.h"
#include "model/vit/vit_config.h"

namespace vitrine {

// Fills `values` (parameter.shape.elements() of them) as a freshly made model would hold them.
// InitRule::vit: tokens and positions truncated normal with σ 0.02, linear weights σ 0.01, patch
// projection normal with σ sqrt(2 / fan-out), biases 0, norms 1 and 0, layer scale its init value.
// InitRule::torch: linear and patch weights and biases uniform in ±1/sqrt(fan-in), tokens in [0, 1).
// Fixed positions are computed.
void init_parameter(const Parameter& parameter, const ViTConfig& config, uint64_t seed,
                    std::span<float> values);

// A normal distribution of this sigma that is cut off at 2 and -2, for a parameter of this name.
void init_truncated_normal(std::string_view name, uint64_t seed, double sigma, std::span<float> values);
// Evenly between -bound and bound.
void init_uniform(std::string_view name, uint64_t seed, double bound, std::span<float> values);

}  // namespace vitrine
