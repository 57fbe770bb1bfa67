// The norm of all gradients, and what they are to be multiplied by so that it stays below a limit.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_clip_scale;
std::vector<reference::OpCase> clip_scale_cases();

// gradients: f32 of any shape. Gives [2] f32: {scale, norm}, the norm being the root of the sum of squares
// and scale = min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_. A max_norm of 0 or
// infinity only measures: the scale is 1. A NaN or infinity among the gradients, or a norm beyond 1e19, makes
// both NaN, and an optimiser that is given such a scale changes nothing.
ValueId clip_scale(Graph& graph, std::string name, ValueId gradients, double max_norm = 0);

}  // namespace vitrine
