// An encoder block: attentions and MLPs, and how they stand to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/vit/modules.h"

namespace vitrine {

struct BlockValues {
  ValueId in;                            // [B, N, dim] f32
  ValueId normed1;                       // what the attention is given
  AttentionValues attention;             // its `out` has the residual added
  ValueId normed2;                       // what the MLP is given
  MlpValues mlp;                         // its `out` has all that is in front of it added
  std::vector<BlockValues> beside = {};  // the other branches', of which each adds to the one before
  ValueId out = {};                      // [B, N, dim] f32
};

// An encoder block: x + ls1(attn(norm1(x))), then x + ls2(mlp(norm2(x))); with post_norm x + norm1(attn(x)),
// then x + norm2(mlp(x)). BlockKind::parallel: x + ls1(attn(norm1(x)) + mlp(norm1(x))). Of several branches
// each has norms and scales of its own: x + the sum of attentions, then x + the sum of MLPs.
class Block : public ModuleBase {
 public:
  // `index` is the block's place in its model: the parameters' `block`, and how often training drops it.
  explicit Block(const ViTConfig& config, std::string name = {}, uint64_t index = 0);
  const Attention& attention(size_t branch = 0) const { return branches_[branch].attention; }
  const Mlp& mlp(size_t branch = 0) const { return branches_[branch].mlp; }

  // [B, N, dim] f32 to [B, N, dim] f32.
  ValueId operator()(GraphBuilder& builder, ValueId x) const { return values(builder, x).out; }
  BlockValues values(GraphBuilder& builder, ValueId x, const AttentionKeeps& keeps = {}) const;

 private:
  struct Branch {
    Attention attention;
    Mlp mlp;
    std::string norm1, scale1, norm2, scale2;  // the ends of the parameters' names
  };
  void number_from(size_t first, const Branch& branch);  // the parameters declared from there on
  ValueId behind(GraphBuilder& builder, std::string_view norm_at, ValueId branch, ValueId residual) const;
  void add_post_norm(GraphBuilder& builder, const AttentionKeeps& keeps, BlockValues& out) const;
  void add_parallel(GraphBuilder& builder, const AttentionKeeps& keeps, BlockValues& out) const;
  void add_branches(GraphBuilder& builder, const AttentionKeeps& keeps, BlockValues& out) const;
  // None where it isn't declared.
  ValueId scale_of(GraphBuilder& builder, const std::string& at) const;

  std::vector<Branch> branches_;
  double drop_rate_ = 0;
};

}  // namespace vitrine
