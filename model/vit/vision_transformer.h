// A whole Vision Transformer, made of modules.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "model/vit/attention_pool.h"
#include "model/vit/block.h"
#include "model/vit/class_block.h"
#include "model/vit/modules.h"
#include "model/vit/neck.h"

namespace vitrine {

// What a graph computes of a batch of images.
//   tokens         [B, tokens, dim], behind the last block and the final LayerNorm, if the model has one:
//                  timm's forward_features(). Behind a neck [B, tokens, neck].
//   features       [B, feature_width]: the tokens pooled, then fc_norm, then the representation layer
//                  with its tanh or CLIP's projection: what the head sees, timm's
//                  forward_head(pre_logits=True). With a distilled head, the mean of the class and the
//                  distillation token. In the words of the published models:
//                    DINOv2   the normalised class token; a Hugging Face classifier's is twice as wide,
//                             with the mean of the patches behind it;
//                    CLIP     post_layernorm of the class token, projected where the file has the
//                             projection: get_image_features(). timm's towers keep the projection as
//                             their head, so there it is the logits;
//                    SigLIP   what the attention pooling gives: pooler_output.
//   logits         [B, classes]: the head's linear layer, before any softmax. With a distilled head, the
//                  mean of the two heads' logits.
//   probabilities  [B, classes]: the softmax of the logits.
enum class Result : uint8_t { logits, probabilities, features, tokens };
std::string_view name_of(Result result);
std::optional<Result> result_named(std::string_view name);
// What the model's own forward pass returns: features without classes, probabilities where softmax is
// part of the model, else logits.
Result natural_result(const ViTConfig& config);
// Of so many images, the extents above.
std::vector<uint64_t> result_shape(const ViTConfig& config, Result result, uint64_t images);

// Somebody who looks into a block while a model's graph is built.
struct BlockTap {
  AttentionKeeps keeps;
  // Called behind the block; may append nodes of its own and mark outputs.
  std::function<void(GraphBuilder&, const BlockValues&)> look;
};
// By block. One behind the last block looks into the attention pooling of a model that has one (when the
// result is made of it): of BlockValues it sees `attention`, and it can keep the log-sum-exp only.
using BlockTaps = std::map<uint64_t, BlockTap>;

class VisionTransformer : public ModuleBase {
 public:
  explicit VisionTransformer(const ViTConfig& config, std::string name = {});
  const PatchEmbed& patch_embed() const { return patch_embed_; }
  const std::vector<Block>& blocks() const { return blocks_; }

  // image [B, channels, image_height, image_width] f32, normalised, to the result, in f32. Asking for
  // logits without classes is an Error(usage).
  ValueId operator()(GraphBuilder& builder, ValueId image, Result result, const BlockTaps& taps = {}) const;
  ValueId operator()(GraphBuilder& builder, ValueId image) const {
    return (*this)(builder, image, natural_result(config_));
  }

  // The logits of both heads of a model with a distilled head: that of the class token, and that of the
  // distillation token, each [B, classes].
  struct Heads {
    ValueId classes, distilled;
  };
  Heads heads(GraphBuilder& builder, ValueId image) const;

  // The three steps of it: the patches' embeddings [B, patches, dim] to what the first block is given
  // [B, tokens_in_blocks, dim] (class token, positions, norm_pre), and the last block's tokens to the result.
  ValueId assemble(GraphBuilder& builder, ValueId patches) const;
  // image to the last block's tokens, in front of the final LayerNorm.
  ValueId tokens(GraphBuilder& builder, ValueId image, const BlockTaps& taps = {}) const;
  ValueId finish(GraphBuilder& builder, ValueId tokens, Result result,
                 const BlockTap* pool_tap = nullptr) const;
  // The patches behind the blocks with the class token in front, behind its own blocks.
  ValueId with_class_token(GraphBuilder& builder, ValueId patches) const;
  // Any block's tokens behind the final LayerNorm or the neck, one of which the model must have; f32.
  ValueId normed(GraphBuilder& builder, std::string_view node, ValueId tokens) const {
    return neck_ ? (*neck_)(builder, path(node), tokens) : norm_as(builder, node, "norm", tokens, DType::f32);
  }

  // The last step in two: what the heads see of each image, [B, head_inputs_width()] side by side, and the
  // logits or probabilities that they make of it. For who has one done once and the other often.
  uint64_t head_inputs_width() const;
  ValueId head_inputs(GraphBuilder& builder, ValueId tokens) const;
  ValueId classify(GraphBuilder& builder, ValueId head_inputs, Result result) const;

 private:
  // What each head sees.
  struct Seen {
    ValueId features, distillation;
  };
  ValueId pooled(GraphBuilder& builder, ValueId x, DType out, const BlockTap* tap) const;
  ValueId token(GraphBuilder& builder, ValueId x, uint64_t index, const std::string& node, DType out) const;
  ValueId features(GraphBuilder& builder, ValueId x, DType out, const BlockTap* tap) const;
  Seen seen(GraphBuilder& builder, ValueId x, const BlockTap* tap) const;
  ValueId classify(GraphBuilder& builder, const Seen& seen, Result result) const;
  ValueId head(GraphBuilder& builder, const std::string& at, ValueId x, ValueId residual = {}) const;

  PatchEmbed patch_embed_;
  std::vector<Block> blocks_;
  std::vector<ClassBlock> class_blocks_;
  std::optional<Neck> neck_;
  std::optional<AttentionPool> attention_pool_;
};

}  // namespace vitrine
