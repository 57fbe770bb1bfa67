// Multi-head attention pooling (MAP): how SigLIP makes one vector of its tokens.
#pragma once

#include "model/modules.h"

namespace vitrine {

// A learned query attends to the patches, as many heads as in the blocks; behind the projection comes
// x + mlp(norm(x)), with the MLP of the blocks.
class AttentionPool : public ModuleBase {
 public:
  explicit AttentionPool(const ViTConfig& config, std::string name = {});
  // [B, patches, dim], stored as builder.dtype(name()) says, to [B, dim] f32.
  ValueId operator()(GraphBuilder& builder, ValueId patches) const;

 private:
  Mlp mlp_;
};

}  // namespace vitrine
