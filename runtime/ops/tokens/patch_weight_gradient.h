// The gradient of a patch embedding's weight, from patches where they lie.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"
#include "runtime/ops/moves/unfold.h"

namespace vitrine {

extern const OpDef op_patch_weight_gradient;
std::vector<reference::OpCase> patch_weight_gradient_cases();

// Up to so many columns of dy it is faster than a product of unfolded patches, which mostly is the unfolding.
constexpr uint64_t narrow_patch_embedding = 32;

// dy [images, patches, N] and image [images, channels, H, W], f32, whose patches they are: the sum over all
// patches of dy's outer product with the patch, [N, channels * patch.height * patch.width].
ValueId patch_weight_gradient(Graph& graph, std::string name, ValueId dy, ValueId image, PatchSize patch);

}  // namespace vitrine
