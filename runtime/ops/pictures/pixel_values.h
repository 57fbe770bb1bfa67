// Bytes to numbers: what a picture's pixels become before a model sees them.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_pixel_values;
std::vector<reference::OpCase> pixel_values_cases();

// pixels [B, H, W] u32, values [C, 256] f32 with C up to 4. Gives [B, C, H, W] f32: for each byte of a
// pixel, lowest first, the number that its channel has for it.
ValueId pixel_values(Graph& graph, std::string name, ValueId pixels, ValueId values);

}  // namespace vitrine
