// Features of each patch, to be compared with a text's vector: where in a picture words are.
#pragma once

#include "model/vit/graph_builder.h"
#include "model/vit/vit_config.h"

namespace vitrine {

// The last block's tokens of one picture, [1, tokens, dim] f32, to [patches, feature_width] f32: what the
// model would make of the picture if it pooled this patch alone. Of CLIP that is the patch's token in place
// of the class token, normed and projected; of SigLIP what its attention pooling gives where it can look at
// nothing else. Error(usage) for a model that doesn't pool one token, a mean or by attention.
ValueId patch_features(GraphBuilder& builder, const ViTConfig& config, ValueId tokens);

}  // namespace vitrine
