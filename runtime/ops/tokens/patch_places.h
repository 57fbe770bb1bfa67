// Where the patches of images lie, for shaders (shaders/lib/patches.glsl).
#pragma once

#include "runtime/graph/op.h"
#include "runtime/ops/moves/unfold.h"

namespace vitrine {

// Of images [images, channels, height, width].
void add_patch_places(const Shape& images, PatchSize patch, Dispatch& dispatch);

}  // namespace vitrine
