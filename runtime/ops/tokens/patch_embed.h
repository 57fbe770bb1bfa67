// Patch embedding: cuts images into patches that don't overlap and maps each to a token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_patch_embed;
std::vector<reference::OpCase> patch_embed_cases();
std::vector<reference::Sample> patch_embed_sample(const reference::LoneNode& node);

struct PatchEmbedOptions {
  uint64_t patch_height = 0, patch_width = 0;
  std::optional<DType> out = std::nullopt;  // f32 when left out
};

// image [B, C, H, W] f32; weight [D, C, patch_height, patch_width] f32 or f16; bias [D] f32, or none.
// Gives [B, H/patch_height * W/patch_width, D], the patches row by row. What is left of H and W beyond
// whole patches is ignored, as a strided convolution ignores it.
ValueId patch_embed(Graph& graph, std::string name, ValueId image, ValueId weight, ValueId bias,
                    const PatchEmbedOptions& options);

}  // namespace vitrine
