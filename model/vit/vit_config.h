// What a Vision Transformer is made of: plain data from which the parameter list, the graph and the
// file names follow. One struct describes every family; a field that is 0 takes the rule beside it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/graph/activation.h"
#include "runtime/util/error.h"

namespace vitrine {

enum class MlpKind : uint8_t { plain, swiglu };
// How a block's attention and MLP stand to each other: the MLP sees what the attention has added, or both see
// the same tokens behind one norm, and their results are added.
enum class BlockKind : uint8_t { sequential, parallel };
// What a head's weights are: a softmax; or one less a learned share of another, of queries and keys of half
// the width, with a norm behind each head (https://arxiv.org/abs/2410.05258); or a mixture of all heads'
// softmaxes, each of a mixture of all heads' scores (https://arxiv.org/abs/2003.02436).
enum class AttentionKind : uint8_t { plain, differential, talking_heads };
// Computed ones are sines and cosines of a token's number, or half of a patch's column and half of its row.
enum class Positions : uint8_t { none, learned, sincos, sincos_grid };
// Convolutions between the image and the patches: none; some without an overlap, each with a batch norm and
// the activation behind it; a ResNet-D with batch norms; or BiT's ResNet v2, of standardised weights with
// group norms.
enum class Stem : uint8_t { none, convolutions, resnet, bit };
// LayerNorm, or its kin without a mean and a bias.
enum class NormKind : uint8_t { layer, rms };
// Who has a bias of the scores by where a patch lies from another: nobody, each block its own, or all blocks
// one. Decomposed, it is what a query makes of two tables of its block, of rows and of columns.
enum class RelativeBias : uint8_t { none, own, shared, decomposed };
// How the columns of a head make the pairs that are turned by a patch's place: 2i and 2i + 1, or i and i +
// half the head's width.
enum class Rotary : uint8_t { none, neighbours, halves };
// Which tokens get a row of the position table.
enum class PositionSpan : uint8_t { patches, class_and_patches, all };
// How a learned table is resampled for another image size. Those with corners put the corners of both grids
// on each other (torchvision, RADIO); the others align the edges of the outermost patches. The nearest one is
// that in which a patch's upper left corner lies.
enum class PositionResize : uint8_t {
  bicubic,
  bicubic_antialias,
  bicubic_corners,
  bilinear,
  bilinear_antialias,
  bilinear_corners,
  nearest,
};
// How the tokens become one vector: the class token; the mean of the patches; both, side by side; attention
// of a learned query to the patches, with an MLP behind it (MAP); the first token where that is a patch; or
// the mean of the tokens in front of the patches.
enum class Pool : uint8_t { token, mean, token_and_mean, attention, first, prefix };
// How random weights are drawn: the paper's ViT (truncated normal) or PyTorch's layer defaults.
enum class InitRule : uint8_t { vit, torch };

std::string_view name_of(MlpKind kind);
std::string_view name_of(BlockKind kind);
std::string_view name_of(AttentionKind kind);
std::string_view name_of(Positions positions);
std::string_view name_of(Stem stem);
std::string_view name_of(NormKind kind);
std::string_view name_of(Rotary rotary);
std::string_view name_of(RelativeBias bias);
std::string_view name_of(PositionSpan span);
std::string_view name_of(PositionResize resize);
std::string_view name_of(Pool pool);
std::string_view name_of(InitRule rule);

struct ViTConfig {
  // The image and how it is cut. Pixels past the last whole patch are not seen.
  uint64_t image_height = 224, image_width = 224;
  uint64_t patch_height = 16, patch_width = 16;
  uint64_t patch_stride_height = 0,
           patch_stride_width = 0;  // from one to the next; 0: patch_height, patch_width
  uint64_t channels = 3;
  bool patch_bias = true;
  bool patch_norm = false;  // a LayerNorm behind the patch projection

  // What patches are cut from where it isn't the image itself. A patch's sides are still pixels of the image.
  Stem stem = Stem::none;
  uint64_t stem_width = 64;                  // channels behind its first layers
  std::array<uint64_t, 4> stem_blocks = {};  // of each of its stages, those that there are

  // Tokens, in the order class, distillation, registers, patches, detection.
  bool class_token = true;
  bool distillation_token = false;
  uint64_t registers = 0;
  uint64_t detection_tokens = 0;
  Positions positions = Positions::learned;
  PositionSpan position_span = PositionSpan::all;
  PositionResize position_resize = PositionResize::bicubic;
  double position_offset =
      0;  // added to the new grid's extents when it is resampled: model/vit/position_table.h
  bool position_square = false;  // resampled to the square of the longer side, of which the grid is a corner
  bool block_positions = false;  // each block but the first adds others of its own in front
  bool pre_norm = false;         // a LayerNorm in front of the first block

  // Rotary positions, of patches alone: queries and keys are turned by angles, those of the first half of the
  // pairs by a patch's row, the others by its column. Pair b of a half has the angle place / base^(b / pairs
  // of a half); see model/vit/rotary_table.h for the places.
  Rotary rotary = Rotary::none;
  double rotary_base = 10000;
  double rotary_offset = 0;       // of rows and columns
  uint64_t rotary_reference = 0;  // how many rows and columns the grid is taken to have; 0: as many as it has
  bool rotary_centered = false;   // places go from -2π to 2π, whatever the grid
  bool rotary_columns_first = false;
  bool rotary_rounded = false;      // the periods base^(b / ..) are rounded to bf16
  bool rotary_learned = false;      // each block and head has angles of its own for a row and for a column
  bool rotary_alternating = false;  // of the second half of the pairs, b is b + 1/2
  bool rotary_class = false;        // the class token is turned as well, by learned angles

  // A number a head for each place that a patch can lie at seen from another, and with a class token three
  // more rows for what concerns it; or computed for these places by an MLP, without the rows.
  RelativeBias relative_bias = RelativeBias::none;
  uint64_t relative_hidden = 0;  // of the MLP; 0: the table itself is learned
  bool relative_swin = false;    // the MLP is Swin v2's: places in other units, its result bounded

  // Patches see those of their own window alone, a square of so many patches a side; 0: all. Windows that
  // reach beyond the grid see zeros there.
  uint64_t window = 0;
  std::vector<uint64_t> global_blocks = {};  // in which they see all nevertheless

  // Blocks.
  uint64_t dim = 768;
  uint64_t depth = 12;
  BlockKind block = BlockKind::sequential;
  // Blocks behind these in which the class token alone looks, at itself and the patches. Where there are
  // some, it isn't there before.
  uint64_t class_blocks = 0;
  uint64_t branches = 1;  // attentions side by side, whose results are added, and behind them as many MLPs
  AttentionKind attention = AttentionKind::plain;
  uint64_t heads = 12;
  uint64_t key_width = 0;    // of a softmax; 0: dim / softmaxes()
  uint64_t value_width = 0;  // of a head; 0: dim / heads
  bool qkv_bias = true;
  bool key_bias = true;        // false: where queries and values have one, keys have none
  bool head_norm = false;      // each head's queries and keys are normalised
  double qk_scale = 0;         // 0: key_width^-0.5
  bool per_head_maps = false;  // q, k and v of head h see only slice h of the token
  bool causal = false;  // a token sees those in front of it alone: text towers, and never a file of pictures
  bool attention_norm = false;  // a norm on the concatenated heads
  bool projection = true;       // the linear layer behind the concatenated heads
  bool projection_bias = true;
  MlpKind mlp = MlpKind::plain;
  uint64_t mlp_hidden = 0;  // 0: 4 dim; swiglu: two thirds of that, rounded up to a multiple of 8
  bool mlp_bias = true;
  bool mlp_norm = false;  // a norm in front of the second layer
  Activation activation = Activation::gelu;
  bool layer_scale = false;
  bool mlp_scale = true;  // false: of layer_scale's two, only the attention's
  double layer_scale_init = 1e-5;
  bool post_norm = false;  // a block's norms are behind its branches, not in front of them
  NormKind norm = NormKind::layer;
  double eps = 1e-6;     // of every norm
  double final_eps = 0;  // of those behind the blocks; 0: eps

  // From tokens to the result.
  bool final_norm = true;  // on all tokens, before pooling
  // Behind the blocks a linear layer to so many columns, a norm, a convolution of 3 x 3 patches and a norm;
  // 0: none.
  uint64_t neck = 0;
  Pool pool = Pool::token;
  bool pool_prefix = false;  // the mean, or what is attended to, are all tokens, not the patches alone
  uint64_t pool_heads = 0;   // of Pool::attention; 0: heads
  uint64_t pool_hidden = 0;  // of its MLP; 0: mlp_hidden
  bool pool_query = true;    // a linear layer makes the query of what is learned
  bool pool_bias = true;     // of its keys and values
  bool pool_mlp = true;      // a norm and an MLP are behind it
  bool fc_norm = false;      // on the pooled features
  uint64_t representation_size = 0;  // a linear layer and tanh before the head; 0: none
  uint64_t embedding_size = 0;       // a linear layer without bias, CLIP's projection; 0: none
  uint64_t classes = 1000;           // 0: no head, the features are the result
  bool distilled_head = false;       // a second head on the distillation token; the result is their mean
  bool softmax_output = false;       // the model's own result is the probabilities

  // Training only.
  double dropout = 0;            // after positions, projections and both layers of the MLP
  double attention_dropout = 0;  // on the attention weights
  double stochastic_depth = 0;   // of the last block; grows linearly from 0 at the first
  InitRule init = InitRule::vit;

  uint64_t stem_stages() const;
  uint64_t stem_stride() const;    // pixels of the image between those that patches are cut from
  uint64_t stem_channels() const;  // of these
  // Pixels from one patch to the next.
  uint64_t stride_height() const { return patch_stride_height ? patch_stride_height : patch_height; }
  uint64_t stride_width() const { return patch_stride_width ? patch_stride_width : patch_width; }
  bool patches_adjoin() const { return stride_height() == patch_height && stride_width() == patch_width; }
  uint64_t grid_height() const { return places(image_height, patch_height, stride_height()); }
  uint64_t grid_width() const { return places(image_width, patch_width, stride_width()); }
  // Of the image, what the patches show.
  uint64_t seen_height() const { return (grid_height() - 1) * stride_height() + patch_height; }
  uint64_t seen_width() const { return (grid_width() - 1) * stride_width() + patch_width; }
  uint64_t patches() const { return grid_height() * grid_width(); }
  uint64_t prefix_tokens() const { return class_token + distillation_token + registers; }
  uint64_t tokens() const { return prefix_tokens() + patches() + detection_tokens; }
  uint64_t prefix_in_blocks() const { return class_blocks ? 0 : prefix_tokens(); }
  uint64_t tokens_in_blocks() const { return prefix_in_blocks() + patches() + detection_tokens; }
  bool is_patch(uint64_t token) const {
    return token >= prefix_tokens() && token < prefix_tokens() + patches();
  }
  uint64_t position_rows() const;
  // Of a block's attention, for each of which there are queries and keys.
  uint64_t softmaxes() const { return attention == AttentionKind::differential ? 2 * heads : heads; }
  uint64_t head_key_width() const { return key_width ? key_width : dim / softmaxes(); }
  uint64_t head_value_width() const { return value_width ? value_width : dim / heads; }
  uint64_t key_columns() const { return softmaxes() * head_key_width(); }  // of all heads
  uint64_t value_columns() const { return heads * head_value_width(); }    // of all heads
  double attention_scale() const;
  uint64_t mlp_width() const;  // columns between the two layers of the MLP, after gating
  uint64_t pooling_heads() const { return pool_heads ? pool_heads : heads; }
  uint64_t pooling_hidden() const { return pool_hidden ? pool_hidden : mlp_width(); }
  // Which tokens are pooled where it isn't one alone.
  uint64_t first_pooled() const { return pool_prefix ? 0 : prefix_tokens(); }
  uint64_t pooled_tokens() const { return pool_prefix ? tokens() : patches(); }
  uint64_t result_width() const { return neck ? neck : dim; }  // of the tokens that are pooled
  uint64_t pooled_width() const { return pool == Pool::token_and_mean ? 2 * dim : result_width(); }
  bool sees_all(uint64_t index) const;  // of that many blocks in front of it
  uint64_t feature_width() const {
    return embedding_size ? embedding_size : representation_size ? representation_size : pooled_width();
  }

  // The same model with every width and scale that follows from others written out.
  ViTConfig resolved() const;

  // Throws an Error that names `origin` (a file or option) and the first field that makes no sense.
  void validate(const std::string& origin, ErrorCode code = ErrorCode::bad_file) const;

  bool operator==(const ViTConfig&) const = default;

 private:
  static uint64_t places(uint64_t image, uint64_t patch, uint64_t stride) {
    return image < patch ? 0 : (image - patch) / stride + 1;
  }
};

// Overrides one field from "KEY=VALUE". KEY is a field's name, or image_size or patch_size for both
// sides at once. Throws Error(usage).
void set_field(ViTConfig& config, std::string_view assignment);
void set_field(ViTConfig& config, std::string_view key, std::string_view value, const std::string& origin,
               ErrorCode code);
// Every field with its value, as set_field() would read it, in the struct's order.
std::vector<std::pair<std::string, std::string>> fields_of(const ViTConfig& config);
// The fields that differ from a default-made config, as "heads=3 depth=2".
std::string to_string(const ViTConfig& config);

// Numbers that a model learns (fixed position tables are not counted).
uint64_t parameter_count(const ViTConfig& config);
// The arithmetic of one batch in matrix products and attention, a multiply-add counting two.
double flops(const ViTConfig& config, uint64_t batch);

}  // namespace vitrine
