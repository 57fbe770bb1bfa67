// Images as rows of patches and back, where a patch embedding is a matrix product like others: its
// derivative.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_unfold;
extern const OpDef op_fold;
std::vector<reference::OpCase> unfold_cases();
std::vector<reference::OpCase> fold_cases();

struct PatchSize {
  uint64_t height = 0, width = 0;
};

// image [B, C, H, W] f32 gives [B, P, C * height * width]: the patches row by row, each with its pixels as
// patch_embed's weight has them. What is left of H and W beyond whole patches is left out.
ValueId unfold(Graph& graph, std::string name, ValueId image, PatchSize patch);
// x [B, P, C * height * width] f32 as images [B, C, H, W] with P patches: zeros where none is.
ValueId fold(Graph& graph, std::string name, ValueId x, uint64_t image_height, uint64_t image_width,
             PatchSize patch);

}  // namespace vitrine
