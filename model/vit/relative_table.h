// The bias of attention's scores by where a patch lies from another, as runtime/ops/attention/attention.h
// orders it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/vit/vit_config.h"

namespace vitrine {

uint64_t relative_rows(const ViTConfig& config);

// What the MLP makes of each place: fc1 [hidden, 2], its bias, fc2 [heads, hidden], its bias (none: zeros).
// Places are the signed logarithms of the distances; what concerns a class token is zero.
struct RelativeMlp {
  std::vector<float> fc1, fc1_bias, fc2, fc2_bias;
};
std::vector<float> relative_table(const ViTConfig& config, const RelativeMlp& mlp);

// A table [from, ..] of decomposed positions for another number of places: linear, as PyTorch's interpolate()
// has it without align_corners.
std::vector<float> resize_relative(std::span<const float> table, uint64_t from, uint64_t to);

}  // namespace vitrine
