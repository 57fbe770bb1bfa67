#include "model/vit/presets.h"

namespace vitrine {
namespace {

struct Size {
  uint64_t dim, depth, heads, mlp_hidden = 0;
};
constexpr Size tiny{192, 12, 3}, small{384, 12, 6}, medium{512, 12, 8}, medium_deep{512, 20, 8},
    betwixt{640, 12, 10}, base{768, 12, 12}, base_plus{896, 12, 14}, large{1024, 24, 16}, huge{1280, 32, 16},
    giant{1408, 40, 16, 6144}, gigantic{1664, 48, 16, 8192}, giant_1536{1536, 40, 24},
    // shape-optimised
    so150m{896, 18, 14, 2304}, so150m_2{832, 21, 13, 2176}, so400m{1152, 27, 16, 4304},
    giant_opt{1536, 40, 16};

using Change = void (*)(ViTConfig&);
void plain(ViTConfig&) {}
void distilled(ViTConfig& c) { c.distillation_token = c.distilled_head = true; }
void no_qkv_bias(ViTConfig& c) { c.qkv_bias = false; }
// DeiT III: the class token has no position, and the residual branches are scaled.
void deit3(ViTConfig& c) {
  c.position_span = PositionSpan::patches;
  c.layer_scale = true;
  c.layer_scale_init = 1e-6;
}
void mean_pool(ViTConfig& c) {
  c.class_token = false;
  c.pool = Pool::mean;
  c.final_norm = false;
  c.fc_norm = true;
}
// EVA's large models: the class token is there and isn't read.
void mean_beside_token(ViTConfig& c) {
  mean_pool(c);
  c.class_token = true;
}
void patch_positions(ViTConfig& c) { c.position_span = PositionSpan::patches; }
// Mean pooling with the LayerNorm still in front of it.
void gap(ViTConfig& c) {
  c.class_token = false;
  c.pool = Pool::mean;
}
void gap_medium(ViTConfig& c) {
  gap(c);
  c.qkv_bias = false;
  c.layer_scale = true;
  c.layer_scale_init = 1e-6;
}
template <uint64_t count>
void registers_gap(ViTConfig& c) {
  mean_pool(c);
  c.registers = count;
  c.position_span = PositionSpan::patches;
}
template <uint64_t count>
void scaled_registers_gap(ViTConfig& c) {
  registers_gap<count>(c);
  c.layer_scale = true;
}
void so150m_gap(ViTConfig& c) {
  gap(c);
  c.registers = 4;
}
void so150m_map(ViTConfig& c) {
  so150m_gap(c);
  c.pool = Pool::attention;
}
void so150m_2_gap(ViTConfig& c) {
  mean_pool(c);
  c.registers = 1;
  c.qkv_bias = false;
  c.layer_scale = true;
}
void scaled(ViTConfig& c) { c.layer_scale = true; }
void clip(ViTConfig& c) {
  c.patch_bias = false;
  c.pre_norm = true;
  c.eps = 1e-5;
}
void clip_quick(ViTConfig& c) {
  clip(c);
  c.activation = Activation::gelu_quick;
}
void siglip(ViTConfig& c) {
  c.class_token = false;
  c.pool = Pool::attention;
}
template <Change base_change>
void tanh_gelu(ViTConfig& c) {
  base_change(c);
  c.activation = Activation::gelu_tanh;
}
void dinov2(ViTConfig& c) { c.layer_scale = true; }
void dinov2_giant(ViTConfig& c) {
  dinov2(c);
  c.mlp = MlpKind::swiglu;
  c.activation = Activation::silu;
}
template <uint64_t count, Change base_change>
void registers(ViTConfig& c) {
  base_change(c);
  c.registers = count;
  c.position_span = PositionSpan::patches;
}
// TIPS v2: DINOv2's architecture with a layer scale that starts at 1.
template <Change base_change>
void tips(ViTConfig& c) {
  registers<1, base_change>(c);
  c.layer_scale_init = 1;
}
void intern(ViTConfig& c) {
  c.layer_scale = true;
  c.layer_scale_init = 0.1;
  c.final_norm = false;
}
// A CIFAR-10 sized model: heads of width 48, no bias on q, k and v.
void cifar(ViTConfig& c) {
  c.qkv_bias = false;
  c.eps = 1e-5;
}
// A ViT for MNIST whose heads each map their own slice of the token, with softmax inside the model.
void myvit(ViTConfig& c) {
  c.channels = 1;
  c.positions = Positions::sincos;
  c.per_head_maps = true;
  c.projection = false;
  c.softmax_output = true;
  c.final_norm = false;
  c.eps = 1e-5;
  c.init = InitRule::torch;
}

struct Row {
  std::string_view name;
  Size size;
  uint64_t patch, image;
  Change change = plain;
  uint64_t classes = 1000;  // for CLIP the width of the space that images and texts share
};

constexpr Row rows[] = {
    {"vit_tiny_patch16_224", tiny, 16, 224},
    {"vit_tiny_patch16_384", tiny, 16, 384},
    {"vit_small_patch32_224", small, 32, 224},
    {"vit_small_patch32_384", small, 32, 384},
    {"vit_small_patch16_224", small, 16, 224},
    {"vit_small_patch16_384", small, 16, 384},
    {"vit_small_patch8_224", small, 8, 224},
    {"vit_base_patch32_224", base, 32, 224},
    {"vit_base_patch32_384", base, 32, 384},
    {"vit_base_patch16_224", base, 16, 224},
    {"vit_base_patch16_384", base, 16, 384},
    {"vit_base_patch8_224", base, 8, 224},
    {"vit_base_patch16_224_miil", base, 16, 224, no_qkv_bias, 11221},
    {"vit_large_patch32_224", large, 32, 224},
    {"vit_large_patch32_384", large, 32, 384},
    {"vit_large_patch16_224", large, 16, 224},
    {"vit_large_patch16_384", large, 16, 384},
    {"vit_large_patch14_224", large, 14, 224},
    {"vit_huge_patch14_224", huge, 14, 224},
    {"vit_giant_patch14_224", giant, 14, 224},
    {"vit_gigantic_patch14_224", gigantic, 14, 224},
    {"vit_medium_patch16_gap_240", medium, 16, 240, gap_medium, 11821},
    {"vit_medium_patch16_gap_256", medium, 16, 256, gap_medium},
    {"vit_medium_patch16_gap_384", medium, 16, 384, gap_medium},
    {"vit_base_patch16_gap_224", {768, 12, 16}, 16, 224, gap},
    {"vit_betwixt_patch16_gap_256", betwixt, 16, 256, gap_medium},
    {"vit_huge_patch14_gap_224", huge, 14, 224, gap, 0},
    {"vit_huge_patch16_gap_448", huge, 16, 448, gap, 0},
    {"vit_giant_patch16_gap_224", giant, 16, 224, gap, 0},
    {"vit_wee_patch16_reg1_gap_256", {256, 14, 4, 1280}, 16, 256, scaled_registers_gap<1>},
    {"vit_little_patch16_reg1_gap_256", {320, 14, 5, 1792}, 16, 256, scaled_registers_gap<1>},
    {"vit_little_patch16_reg4_gap_256", {320, 14, 5, 1792}, 16, 256, scaled_registers_gap<4>},
    {"vit_medium_patch16_reg1_gap_256", medium, 16, 256, scaled_registers_gap<1>},
    {"vit_medium_patch16_reg4_gap_256", medium, 16, 256, scaled_registers_gap<4>},
    {"vit_mediumd_patch16_reg4_gap_256", medium_deep, 16, 256, scaled_registers_gap<4>},
    {"vit_mediumd_patch16_reg4_gap_384", medium_deep, 16, 384, scaled_registers_gap<4>},
    {"vit_betwixt_patch16_reg1_gap_256", betwixt, 16, 256, scaled_registers_gap<1>},
    {"vit_betwixt_patch16_reg4_gap_256", betwixt, 16, 256, scaled_registers_gap<4>},
    {"vit_betwixt_patch16_reg4_gap_384", betwixt, 16, 384, scaled_registers_gap<4>},
    {"vit_base_patch16_reg4_gap_256", base, 16, 256, registers_gap<4>},
    {"vit_base_patch16_reg8_gap_256", base, 16, 256, registers_gap<8>},
    {"vit_so150m_patch16_reg4_map_256", so150m, 16, 256, so150m_map},
    {"vit_so150m_patch16_reg4_gap_256", so150m, 16, 256, so150m_gap},
    {"vit_so150m_patch16_reg4_gap_384", so150m, 16, 384, so150m_gap},
    {"vit_so150m2_patch16_reg1_gap_256", so150m_2, 16, 256, so150m_2_gap},
    {"vit_so150m2_patch16_reg1_gap_384", so150m_2, 16, 384, so150m_2_gap},
    {"vit_so150m2_patch16_reg1_gap_448", so150m_2, 16, 448, so150m_2_gap},
    {"vit_small_patch16_36x1_224", {384, 36, 6}, 16, 224, scaled},
    {"vit_base_patch32_plus_256", base_plus, 32, 256, scaled},
    {"vit_base_patch16_plus_240", base_plus, 16, 240, scaled},
    {"eva_large_patch14_196", large, 14, 196, mean_beside_token},
    {"eva_large_patch14_336", large, 14, 336, mean_beside_token},
    {"flexivit_small", small, 16, 240, patch_positions},
    {"flexivit_base", base, 16, 240, patch_positions},
    {"flexivit_large", large, 16, 240, patch_positions},
    {"vit_intern300m_patch14_448", large, 14, 448, intern, 0},
    // CLIP
    {"vit_xsmall_patch16_clip_224", {256, 10, 4}, 16, 224, clip, 512},
    {"vit_medium_patch32_clip_224", medium, 32, 224, clip, 512},
    {"vit_medium_patch16_clip_224", medium, 16, 224, clip, 512},
    {"vit_betwixt_patch32_clip_224", betwixt, 32, 224, clip, 512},
    {"vit_base_patch32_clip_224", base, 32, 224, clip},
    {"vit_base_patch32_clip_256", base, 32, 256, clip, 512},
    {"vit_base_patch32_clip_384", base, 32, 384, clip},
    {"vit_base_patch32_clip_448", base, 32, 448, clip},
    {"vit_base_patch16_clip_224", base, 16, 224, clip},
    {"vit_base_patch16_clip_384", base, 16, 384, clip},
    {"vit_base_patch16_plus_clip_240", base_plus, 16, 240, clip, 640},
    {"vit_large_patch14_clip_224", large, 14, 224, clip},
    {"vit_large_patch14_clip_336", large, 14, 336, clip},
    {"vit_huge_patch14_clip_224", huge, 14, 224, clip},
    {"vit_huge_patch14_clip_336", huge, 14, 336, clip},
    {"vit_huge_patch14_clip_378", huge, 14, 378, clip, 1024},
    {"vit_giant_patch14_clip_224", giant, 14, 224, clip, 1024},
    {"vit_gigantic_patch14_clip_224", gigantic, 14, 224, clip, 1280},
    {"vit_gigantic_patch14_clip_378", gigantic, 14, 378, clip, 1280},
    {"vit_base_patch32_clip_quickgelu_224", base, 32, 224, clip_quick, 512},
    {"vit_base_patch16_clip_quickgelu_224", base, 16, 224, clip_quick, 512},
    {"vit_large_patch14_clip_quickgelu_224", large, 14, 224, clip_quick, 768},
    {"vit_large_patch14_clip_quickgelu_336", large, 14, 336, clip_quick, 768},
    {"vit_huge_patch14_clip_quickgelu_224", huge, 14, 224, clip_quick, 1024},
    {"vit_huge_patch14_clip_quickgelu_378", huge, 14, 378, clip_quick, 1024},
    {"vit_gigantic_patch14_clip_quickgelu_224", gigantic, 14, 224, clip_quick, 1280},
    // DINOv2
    {"vit_small_patch14_dinov2", small, 14, 518, dinov2, 0},
    {"vit_base_patch14_dinov2", base, 14, 518, dinov2, 0},
    {"vit_large_patch14_dinov2", large, 14, 518, dinov2, 0},
    {"vit_giant_patch14_dinov2", giant_1536, 14, 518, dinov2_giant, 0},
    {"vit_small_patch14_reg4_dinov2", small, 14, 518, registers<4, dinov2>, 0},
    {"vit_base_patch14_reg4_dinov2", base, 14, 518, registers<4, dinov2>, 0},
    {"vit_large_patch14_reg4_dinov2", large, 14, 518, registers<4, dinov2>, 0},
    {"vit_giant_patch14_reg4_dinov2", giant_1536, 14, 518, registers<4, dinov2_giant>, 0},
    {"vit_base_patch14_reg1_tipsv2", base, 14, 448, tips<dinov2>, 0},
    {"vit_large_patch14_reg1_tipsv2", large, 14, 448, tips<dinov2>, 0},
    {"vit_so400m_patch14_reg1_tipsv2", so400m, 14, 448, tips<dinov2>, 0},
    {"vit_giant_patch14_reg1_tipsv2", giant_1536, 14, 448, tips<dinov2_giant>, 0},
    // SigLIP
    {"vit_base_patch32_siglip_256", base, 32, 256, tanh_gelu<siglip>, 0},
    {"vit_base_patch16_siglip_224", base, 16, 224, siglip, 0},
    {"vit_base_patch16_siglip_256", base, 16, 256, siglip, 0},
    {"vit_base_patch16_siglip_384", base, 16, 384, siglip, 0},
    {"vit_base_patch16_siglip_512", base, 16, 512, siglip, 0},
    {"vit_large_patch16_siglip_256", large, 16, 256, siglip, 0},
    {"vit_large_patch16_siglip_384", large, 16, 384, siglip, 0},
    {"vit_large_patch16_siglip_512", large, 16, 512, tanh_gelu<siglip>, 0},
    {"vit_so400m_patch14_siglip_224", so400m, 14, 224, siglip, 0},
    {"vit_so400m_patch14_siglip_378", so400m, 14, 378, siglip, 0},
    {"vit_so400m_patch14_siglip_384", so400m, 14, 384, siglip, 0},
    {"vit_so400m_patch16_siglip_256", so400m, 16, 256, tanh_gelu<siglip>, 0},
    {"vit_so400m_patch16_siglip_384", so400m, 16, 384, tanh_gelu<siglip>, 0},
    {"vit_so400m_patch16_siglip_512", so400m, 16, 512, tanh_gelu<siglip>, 0},
    {"vit_giantopt_patch16_siglip_256", giant_opt, 16, 256, tanh_gelu<siglip>, 0},
    {"vit_giantopt_patch16_siglip_384", giant_opt, 16, 384, tanh_gelu<siglip>, 0},
    {"vit_base_patch32_siglip_gap_256", base, 32, 256, tanh_gelu<gap>, 0},
    {"vit_base_patch16_siglip_gap_224", base, 16, 224, gap, 0},
    {"vit_base_patch16_siglip_gap_256", base, 16, 256, gap, 0},
    {"vit_base_patch16_siglip_gap_384", base, 16, 384, gap, 0},
    {"vit_base_patch16_siglip_gap_512", base, 16, 512, gap, 0},
    {"vit_large_patch16_siglip_gap_256", large, 16, 256, gap, 0},
    {"vit_large_patch16_siglip_gap_384", large, 16, 384, gap, 0},
    {"vit_large_patch16_siglip_gap_512", large, 16, 512, tanh_gelu<gap>, 0},
    {"vit_so400m_patch14_siglip_gap_224", so400m, 14, 224, gap, 0},
    {"vit_so400m_patch14_siglip_gap_378", so400m, 14, 378, gap, 0},
    {"vit_so400m_patch14_siglip_gap_384", so400m, 14, 384, gap, 0},
    {"vit_so400m_patch14_siglip_gap_448", so400m, 14, 448, gap, 0},
    {"vit_so400m_patch14_siglip_gap_896", so400m, 14, 896, gap, 0},
    {"vit_so400m_patch16_siglip_gap_256", so400m, 16, 256, tanh_gelu<gap>, 0},
    {"vit_so400m_patch16_siglip_gap_384", so400m, 16, 384, tanh_gelu<gap>, 0},
    {"vit_so400m_patch16_siglip_gap_512", so400m, 16, 512, tanh_gelu<gap>, 0},
    {"vit_giantopt_patch16_siglip_gap_256", giant_opt, 16, 256, tanh_gelu<gap>, 0},
    {"vit_giantopt_patch16_siglip_gap_384", giant_opt, 16, 384, tanh_gelu<gap>, 0},
    // DeiT
    {"deit_tiny_patch16_224", tiny, 16, 224},
    {"deit_small_patch16_224", small, 16, 224},
    {"deit_base_patch16_224", base, 16, 224},
    {"deit_base_patch16_384", base, 16, 384},
    {"deit_tiny_distilled_patch16_224", tiny, 16, 224, distilled},
    {"deit_small_distilled_patch16_224", small, 16, 224, distilled},
    {"deit_base_distilled_patch16_224", base, 16, 224, distilled},
    {"deit_base_distilled_patch16_384", base, 16, 384, distilled},
    {"deit3_small_patch16_224", small, 16, 224, deit3},
    {"deit3_small_patch16_384", small, 16, 384, deit3},
    {"deit3_medium_patch16_224", medium, 16, 224, deit3},
    {"deit3_base_patch16_224", base, 16, 224, deit3},
    {"deit3_base_patch16_384", base, 16, 384, deit3},
    {"deit3_large_patch16_224", large, 16, 224, deit3},
    {"deit3_large_patch16_384", large, 16, 384, deit3},
    {"deit3_huge_patch14_224", huge, 14, 224, deit3},
    // torchvision
    {"vit_b_16", base, 16, 224},
    {"vit_b_32", base, 32, 224},
    {"vit_l_16", large, 16, 224},
    {"vit_l_32", large, 32, 224},
    {"vit_h_14", huge, 14, 224},
    // from scratch
    {"cifar_vit", {384, 6, 8}, 4, 32, cifar, 10},
    {"myvit_mnist", {8, 2, 2}, 4, 28, myvit, 10},
};

ViTConfig config_of(const Row& row) {
  ViTConfig c;
  c.image_height = c.image_width = row.image;
  c.patch_height = c.patch_width = row.patch;
  c.dim = row.size.dim;
  c.depth = row.size.depth;
  c.heads = row.size.heads;
  c.mlp_hidden = row.size.mlp_hidden;
  c.classes = row.classes;
  row.change(c);
  return c;
}

}  // namespace

std::optional<ViTConfig> find_preset(std::string_view name) {
  name = name.substr(0, name.find('.'));
  for (const Row& row : rows) {
    if (row.name == name) return config_of(row);
  }
  return std::nullopt;
}

ViTConfig preset(std::string_view name) {
  if (auto config = find_preset(name)) return *config;
  throw Error(ErrorCode::usage, "there is no preset named '" + std::string(name.substr(0, 80)) + "'");
}

std::vector<std::string_view> preset_names() {
  std::vector<std::string_view> names;
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}

}  // namespace vitrine
