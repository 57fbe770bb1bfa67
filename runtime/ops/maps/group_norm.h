// Group normalization: gamma (x - mean) / sqrt(variance + eps) + beta, with the mean and the variance of a
// group of channels over all pixels of an image.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/activation.h"
#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_group_norm;
std::vector<reference::OpCase> group_norm_cases();

struct GroupNormOptions {
  uint64_t groups = 32;
  double eps = 1e-5;
  Activation activation = Activation::none;  // behind it
  std::optional<DType> out = std::nullopt;   // the input's dtype when left out
};

// x [B, pixels, C] f32 or f16, of which `groups` divides C; gamma and beta [C] f32. Statistics are f32, and
// the variance is of distances from the mean.
ValueId group_norm(Graph& graph, std::string name, ValueId x, ValueId gamma, ValueId beta,
                   const GroupNormOptions& options = {});

}  // namespace vitrine
