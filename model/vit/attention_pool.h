// Multi-head attention pooling (MAP): how SigLIP makes one vector of its tokens.
#pragma once

#include "model/vit/modules.h"

namespace vitrine {

// A learned query attends to the patches (with pool_prefix to all tokens) in pool_heads; behind the
// projection comes x + mlp(norm(x)), with a plain MLP.
class AttentionPool : public ModuleBase {
 public:
  explicit AttentionPool(const ViTConfig& config, std::string name = {});
  // [B, patches, dim], stored as builder.dtype(name()) says, to [B, dim] f32.
  ValueId operator()(GraphBuilder& builder, ValueId patches) const { return values(builder, patches).out; }
  // The same, with the query's attention: one row a head, with its log-sum-exp if keep_lse.
  struct Values {
    AttentionValues attention;
    ValueId out;
  };
  Values values(GraphBuilder& builder, ValueId patches, bool keep_lse = false) const;

 private:
  Mlp mlp_;
};

}  // namespace vitrine
