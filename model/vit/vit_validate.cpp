// The limits of ViTConfig. They are generous (the largest published ViT has 22 billion parameters) and
// are checked before anything is computed from a config, so that a hostile one asks for no memory.
#include <cmath>
#include <tuple>

#include "model/vit/stem.h"
#include "model/vit/vit_config.h"

namespace vitrine {
namespace {

constexpr uint64_t max_image = 16384, max_tokens = 65536, max_dim = 65536, max_depth = 1024, max_heads = 1024,
                   max_branches = 16;
constexpr uint64_t max_head_width = 256;  // what the attention kernels hold in registers
constexpr uint64_t max_parameters = 100'000'000'000;

struct Checker {
  const std::string& origin;
  ErrorCode code;

  void require(bool condition, const std::string& sentence) const {
    if (!condition) throw Error(code, origin + ": " + sentence);
  }
  void range(const char* field, uint64_t value, uint64_t low, uint64_t high) const {
    require(value >= low && value <= high, std::string(field) + " is " + std::to_string(value) +
                                               ", expected " + std::to_string(low) + " to " +
                                               std::to_string(high));
  }
  void share(const char* field, double value) const {
    require(value >= 0 && value < 1,
            std::string(field) + " is " + std::to_string(value) + ", expected at least 0 and less than 1");
  }
};

void check_image(const Checker& check, const ViTConfig& c) {
  check.range("image_height", c.image_height, 1, max_image);
  check.range("image_width", c.image_width, 1, max_image);
  check.range("patch_height", c.patch_height, 1, c.image_height);
  check.range("patch_width", c.patch_width, 1, c.image_width);
  check.range("patch_stride_height", c.stride_height(), 1, max_image);
  check.range("patch_stride_width", c.stride_width(), 1, max_image);
  check.require(
      c.stem == Stem::none || c.patches_adjoin(),
      "patches overlap or lie apart and stem is " + std::string(name_of(c.stem)) + ", expected stem=none");
  check.range("channels", c.channels, 1, 1024);
  check.range("registers", c.registers, 0, 4096);
  check.range("detection_tokens", c.detection_tokens, 0, 4096);
  check.require(c.detection_tokens == 0 || c.positions == Positions::none ||
                    (c.positions == Positions::learned && c.position_span == PositionSpan::all),
                "detection_tokens is " + std::to_string(c.detection_tokens) +
                    ", expected positions=learned and position_span=all beside it, or positions=none");
  check.require(
      c.detection_tokens == 0 || (c.rotary == Rotary::none && c.relative_bias == RelativeBias::none &&
                                  c.window == 0 && c.neck == 0 && c.pool != Pool::attention),
      "detection_tokens is " + std::to_string(c.detection_tokens) +
          ", expected no rotary, relative_bias, window or neck beside it, and no pooling by attention");
  check.require(!c.block_positions || c.positions == Positions::learned,
                "block_positions is true, expected positions=learned beside it");
  check.require(
      c.position_offset >= 0 && c.position_offset < 1,
      "position_offset is " + std::to_string(c.position_offset) + ", expected at least 0 and less than 1");
  check.require(c.positions != Positions::sincos_grid ||
                    (c.dim % 4 == 0 && (c.prefix_tokens() == 0 || c.position_span == PositionSpan::patches)),
                "positions is sincos_grid, expected a dim that is a multiple of 4, and position_span=patches "
                "where there are tokens in front of these");
  check.require(c.tokens() <= max_tokens, "the image makes " + std::to_string(c.tokens()) +
                                              " tokens, expected at most " + std::to_string(max_tokens));
}

void check_stem(const Checker& check, const ViTConfig& c) {
  const uint64_t stages = c.stem_stages(), stride = c.stem_stride();
  for (size_t i = 0; i < c.stem_blocks.size(); ++i) {
    check.range("a number of stem_blocks", c.stem_blocks[i], 0, 256);
    check.require(i < stages || c.stem_blocks[i] == 0,
                  "stem_blocks has a stage without blocks before others");
  }
  if (c.stem == Stem::none) return;
  check.range("stem_width", c.stem_width, 1, 4096);
  const std::string is = "stem is " + std::string(name_of(c.stem));
  check.require(c.stem != Stem::convolutions || stages == 0, is + ", expected stem_blocks=0");
  check.require(c.stem != Stem::resnet || (stages > 0 && c.stem_width % 2 == 0),
                is + ", expected stem_blocks and an even stem_width");
  check.require(c.stem != Stem::bit || c.stem_width % stem_groups == 0,
                is + " and stem_width is " + std::to_string(c.stem_width) + ", expected a multiple of " +
                    std::to_string(stem_groups));
  for (const auto& [side, patch, image] : {std::tuple("height", c.patch_height, c.image_height),
                                           std::tuple("width", c.patch_width, c.image_width)}) {
    check.require(patch % stride == 0, std::string("patch_") + side + " is " + std::to_string(patch) +
                                           ", expected a multiple of the " + std::to_string(stride) +
                                           " pixels that its convolutions take together");
    check.require(image % patch == 0, std::string("image_") + side + " is " + std::to_string(image) +
                                          ", expected whole patches of " + std::to_string(patch) +
                                          " behind convolutions");
  }
}

void check_blocks(const Checker& check, const ViTConfig& c) {
  check.range("dim", c.dim, 1, max_dim);
  check.range("depth", c.depth, 1, max_depth);
  check.require(c.heads != 0, "the head count cannot be told from the tensors' shapes of a model of width " +
                                  std::to_string(c.dim) + ", expected --set heads=N");
  check.range("heads", c.heads, 1, max_heads);
  if (c.key_width == 0 || c.value_width == 0 || c.per_head_maps) {
    check.require(c.dim % c.heads == 0, "dim is " + std::to_string(c.dim) + ", expected a multiple of the " +
                                            std::to_string(c.heads) + " heads");
    check.require(c.key_width != 0 || c.dim % c.softmaxes() == 0,
                  "dim is " + std::to_string(c.dim) + ", expected a multiple of " +
                      std::to_string(c.softmaxes()) + " for the two softmaxes of each head");
  }
  check.range("key_width", c.head_key_width(), 1, max_head_width);
  check.range("value_width", c.head_value_width(), 1, max_head_width);
  check.range("mlp_hidden", c.mlp_width(), 1, 8 * max_dim);
  check.require(std::isfinite(c.qk_scale), "qk_scale is not finite");
  check.require(!c.per_head_maps || (c.key_bias && !c.head_norm),
                "per_head_maps is true, expected key_bias=true and head_norm=false beside it");
  check.range("branches", c.branches, 1, max_branches);
  check.require(
      c.block == BlockKind::sequential || (c.branches == 1 && !c.post_norm),
      "block is " + std::string(name_of(c.block)) + ", expected branches=1 and post_norm=false beside it");
  check.require(c.branches == 1 || !c.post_norm,
                "branches is " + std::to_string(c.branches) + ", expected post_norm=false beside it");
  check.require(!c.post_norm || !c.layer_scale,
                "post_norm and layer_scale are true, expected at most one of the two");
  check.require(c.attention == AttentionKind::plain ||
                    (!c.per_head_maps && !c.causal && c.window == 0 && c.rotary == Rotary::none &&
                     c.relative_bias == RelativeBias::none),
                "attention is " + std::string(name_of(c.attention)) +
                    ", expected per_head_maps=false, window=0, rotary=none and relative_bias=none beside it");
  check.require(c.eps > 0 && c.eps < 1,
                "eps is " + std::to_string(c.eps) + ", expected more than 0 and less than 1");
  check.require(std::isfinite(c.layer_scale_init), "layer_scale_init is not finite");
  if (!c.projection) {
    check.require(c.value_columns() == c.dim,
                  "the heads' outputs make " + std::to_string(c.value_columns()) +
                      " columns and projection is false, expected dim = " + std::to_string(c.dim));
    check.require(!c.layer_scale,
                  "layer_scale is true and projection is false, expected at most one of the two");
  }
}

void check_class_blocks(const Checker& check, const ViTConfig& c) {
  check.range("class_blocks", c.class_blocks, 0, max_depth);
  if (c.class_blocks == 0) return;
  const std::string is = "class_blocks is " + std::to_string(c.class_blocks);
  check.require(c.class_token && c.prefix_tokens() == 1,
                is + " and there are " + std::to_string(c.prefix_tokens()) +
                    " tokens beside the patches, expected a class token alone");
  check.require(c.positions == Positions::none || c.position_span == PositionSpan::patches,
                is + ", expected position_span=patches beside it");
  check.require(c.mlp == MlpKind::plain && !c.mlp_norm && c.block == BlockKind::sequential &&
                    c.branches == 1 && !c.post_norm && c.rotary == Rotary::none &&
                    c.relative_bias == RelativeBias::none && c.dim % c.heads == 0,
                is + ", expected plain blocks with learned positions beside it, whose heads divide dim");
}

void check_rotary(const Checker& check, const ViTConfig& c) {
  if (c.rotary == Rotary::none) {
    check.require(!c.rotary_learned, "rotary_learned is true and rotary is none, expected rotary=neighbours");
    check.require(!c.rotary_class, "rotary_class is true and rotary is none, expected rotary=halves");
    return;
  }
  check.require(!c.rotary_class || (c.class_token && c.prefix_tokens() == 1 && !c.rotary_learned),
                "rotary_class is true, expected a class token alone in front of the patches and "
                "rotary_learned=false beside it");
  check.require(c.head_key_width() % 4 == 0, "rotary is " + std::string(name_of(c.rotary)) +
                                                 " and the heads are " + std::to_string(c.head_key_width()) +
                                                 " wide, expected a multiple of 4");
  check.require(c.rotary_base >= 1 && c.rotary_base <= 1e9,
                "rotary_base is " + std::to_string(c.rotary_base) + ", expected 1 to 1000000000");
  check.require(std::abs(c.rotary_offset) <= 65536,
                "rotary_offset is " + std::to_string(c.rotary_offset) + ", expected at most 65536");
  check.range("rotary_reference", c.rotary_reference, 0, max_image);
  check.require(!c.rotary_learned || (!c.rotary_centered && !c.rotary_rounded && c.rotary_reference == 0),
                "rotary_learned is true, expected rotary_centered=false, rotary_rounded=false and "
                "rotary_reference=0 beside it");
}

void check_relative(const Checker& check, const ViTConfig& c) {
  check.range("relative_hidden", c.relative_hidden, 0, max_dim);
  if (c.relative_bias == RelativeBias::none) {
    check.require(c.relative_hidden == 0,
                  "relative_hidden is not 0 and relative_bias is none, expected relative_bias=own or shared");
    return;
  }
  check.require(c.prefix_tokens() == c.class_token,
                "relative_bias is " + std::string(name_of(c.relative_bias)) + " and there are " +
                    std::to_string(c.prefix_tokens()) +
                    " tokens in front of the patches, expected a class token or none");
  check.require(
      !c.relative_swin || (c.relative_hidden && c.grid_height() > 1 && c.grid_width() > 1),
      "relative_swin is true, expected relative_hidden and a grid of several rows and columns beside it");
}

void check_windows(const Checker& check, const ViTConfig& c) {
  check.range("window", c.window, 0, max_image);
  check.require(c.global_blocks.size() <= max_depth,
                "global_blocks has more than 1024 numbers, expected blocks");
  const bool decomposed = c.relative_bias == RelativeBias::decomposed;
  const auto alone = [&](bool there, const std::string& what) {
    check.require(!there || c.prefix_tokens() == 0, what + " and there are " +
                                                        std::to_string(c.prefix_tokens()) +
                                                        " tokens in front of the patches, expected none");
  };
  alone(c.window, "window is " + std::to_string(c.window));
  alone(decomposed, "relative_bias is decomposed");
  alone(c.neck, "neck is " + std::to_string(c.neck));
  check.require(!c.window || (c.rotary == Rotary::none && !c.causal &&
                              (decomposed || c.relative_bias == RelativeBias::none)),
                "window is " + std::to_string(c.window) +
                    ", expected rotary=none and relative_bias=decomposed or none beside it");
  check.range("neck", c.neck, 0, max_dim);
  check.require(!c.neck || (!c.final_norm && !c.fc_norm && c.pool == Pool::mean),
                "neck is " + std::to_string(c.neck) +
                    ", expected final_norm=false, fc_norm=false and pool=mean beside it");
  check.require(c.final_eps >= 0 && c.final_eps < 1,
                "final_eps is " + std::to_string(c.final_eps) + ", expected at least 0 and less than 1");
}

void check_result(const Checker& check, const ViTConfig& c) {
  const bool reads_token = c.pool == Pool::token || c.pool == Pool::token_and_mean;
  check.require(!reads_token || c.class_token,
                "pool is " + std::string(name_of(c.pool)) + " and class_token is false, expected pool=mean");
  check.require(c.pool != Pool::token_and_mean || !c.fc_norm,
                "pool is token_and_mean and fc_norm is true, expected at most one of the two");
  check.require(c.pool != Pool::first || c.prefix_tokens() == 0,
                "pool is first and there are tokens in front of the patches, expected pool=token");
  check.require(c.pool != Pool::prefix || c.prefix_tokens() > 0,
                "pool is prefix and there are no tokens in front of the patches, expected pool=mean");
  if (c.pool == Pool::attention) {
    const uint64_t heads = c.pooling_heads();
    check.range("pool_heads", heads, 1, max_heads);
    check.range("pool_hidden", c.pooling_hidden(), 1, 8 * max_dim);
    check.require(c.dim % heads == 0, "dim is " + std::to_string(c.dim) + ", expected a multiple of the " +
                                          std::to_string(heads) + " heads of the pooling");
    check.range("dim / pool_heads", c.dim / heads, 1, max_head_width);
  }
  check.range("representation_size", c.representation_size, 0, max_dim);
  check.range("embedding_size", c.embedding_size, 0, max_dim);
  check.require(!c.representation_size || !c.embedding_size,
                "representation_size and embedding_size are both set, expected at most one of the two");
  check.range("classes", c.classes, 0, 4'000'000);
  if (c.distilled_head) {
    check.require(c.class_token && c.distillation_token && c.pool == Pool::token &&
                      c.representation_size == 0 && c.embedding_size == 0,
                  "distilled_head is true, expected class_token and distillation_token true, pool=token, "
                  "representation_size=0 and embedding_size=0");
  }
  check.require(!c.softmax_output || c.classes > 0,
                "softmax_output is true and classes is 0, expected classes > 0");
  check.share("dropout", c.dropout);
  check.share("attention_dropout", c.attention_dropout);
  check.share("stochastic_depth", c.stochastic_depth);
}

}  // namespace

void ViTConfig::validate(const std::string& origin, ErrorCode code) const {
  const Checker check{origin, code};
  check_image(check, *this);
  check_stem(check, *this);
  check_blocks(check, *this);
  check_class_blocks(check, *this);
  check_rotary(check, *this);
  check_relative(check, *this);
  check_windows(check, *this);
  check_result(check, *this);
  // Counted in floating point first: every factor is in range now, the product may not be.
  const double branch = static_cast<double>(dim) *
                        static_cast<double>(2 * key_columns() + 2 * value_columns() + 3 * mlp_width());
  const double rough = branch * static_cast<double>(depth * branches + class_blocks) +
                       static_cast<double>(dim) * static_cast<double>(classes) +
                       static_cast<double>(dim) * static_cast<double>(tokens());
  check.require(rough <= static_cast<double>(max_parameters),
                "the configuration asks for about " + std::to_string(static_cast<uint64_t>(rough / 1e9)) +
                    " billion parameters, expected at most " +
                    std::to_string(max_parameters / 1'000'000'000) + " billion");
}

}  // namespace vitrine
