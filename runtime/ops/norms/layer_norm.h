// Layer normalization over the last dimension: gamma (x - mean) / sqrt(variance + eps) + beta; and RMSNorm.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_layer_norm;
std::vector<reference::OpCase> layer_norm_cases();
std::vector<reference::Sample> layer_norm_sample(const reference::LoneNode& node);

struct LayerNormOptions {
  double eps = 1e-6;
  std::optional<DType> out = std::nullopt;  // the input's dtype when left out
  // RMSNorm: gamma x / sqrt(mean(x^2) + eps). No mean is taken off, and beta is none.
  bool rms = false;
};

// x [.., width] f32 or f16; gamma and beta [width] f32. Statistics are f32, the variance takes a second
// pass over the row.
ValueId layer_norm(Graph& graph, std::string name, ValueId x, ValueId gamma, ValueId beta,
                   const LayerNormOptions& options = {});

}  // namespace vitrine
