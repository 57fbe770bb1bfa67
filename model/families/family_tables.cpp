// The families' tables. A new family is a new table here and a line in all_families().
#include <algorithm>
#include <array>
#include <cmath>

#include "model/families/hugging_face_tables.h"
#include "model/families/timm_tables.h"

namespace vitrine {
namespace {

void adjust_timm(const TensorShapes&, ViTConfig& c) {
  if (c.pre_norm) c.eps = 1e-5;  // CLIP's towers
}

}  // namespace

const Family& timm() {
  static const Family family{
      .name = "timm",
      .title = "timm ViT",
      .landmarks = {"patch_embed.proj.weight", "blocks.0.norm1.weight"},
      .paths = {{Module::patch, {"patch_embed.proj."}},
                {Module::patch_norm, {"patch_embed.norm."}},
                {Module::stem, {"patch_embed.backbone."}},
                {Module::class_token, {"cls_token"}},
                {Module::distillation_token, {"dist_token"}},
                {Module::registers, {"reg_token"}},
                {Module::positions, {"pos_embed"}},
                // As Vitrine writes what timm's models don't have.
                {Module::detection_tokens, {"det_token"}},
                {Module::block_positions, {"blocks.*.pos_embed"}},
                {Module::rotary_class, {"rope.class_token"}},
                {Module::rotary_frequencies, {"rope.freqs"}},
                {Module::relative_bias,
                 {"blocks.*.attn.rel_pos"},
                 {"blocks.*.attn.relative_position_bias_table"}},
                {Module::relative_fc1, {"blocks.*.attn.rel_pos.fc1."}, {"blocks.*.attn.rel_pos.mlp.fc1."}},
                {Module::relative_fc2, {"blocks.*.attn.rel_pos.fc2."}, {"blocks.*.attn.rel_pos.mlp.fc2."}},
                {Module::shared_relative_bias, {"rel_pos"}, {"rel_pos_bias.relative_position_bias_table"}},
                {Module::shared_relative_fc1, {"rel_pos.fc1."}, {"shared_rel_pos.mlp.fc1."}},
                {Module::shared_relative_fc2, {"rel_pos.fc2."}, {"shared_rel_pos.mlp.fc2."}},
                {Module::pre_norm, {"norm_pre."}},
                {Module::norm1, {"blocks.*.norm1."}},
                {.module = Module::qkv,
                 .parts = {"blocks.*.attn.qkv."},
                 .alternative = {"blocks.*.attn.q_proj.", "blocks.*.attn.k_proj.", "blocks.*.attn.v_proj."},
                 .biases = {"blocks.*.attn.q_bias", "", "blocks.*.attn.v_bias"}},
                {Module::q, {"blocks.*.attn.q."}},
                {Module::k, {"blocks.*.attn.k."}},
                {Module::v, {"blocks.*.attn.v."}},
                {Module::q_norm, {"blocks.*.attn.q_norm."}},
                {Module::k_norm, {"blocks.*.attn.k_norm."}},
                {Module::lambda_q1, {"blocks.*.attn.lambda_q1"}},
                {Module::lambda_k1, {"blocks.*.attn.lambda_k1"}},
                {Module::lambda_q2, {"blocks.*.attn.lambda_q2"}},
                {Module::lambda_k2, {"blocks.*.attn.lambda_k2"}},
                {Module::sub_norm, {"blocks.*.attn.sub_norm."}},
                {Module::talking_before, {"blocks.*.attn.proj_l."}},
                {Module::talking_after, {"blocks.*.attn.proj_w."}},
                {Module::attention_norm, {"blocks.*.attn.norm."}},
                {Module::projection, {"blocks.*.attn.proj."}},
                {Module::scale1, {"blocks.*.ls1.gamma"}, {"blocks.*.gamma_1"}},
                {Module::norm2, {"blocks.*.norm2."}},
                {Module::fc1, {"blocks.*.mlp.fc1."}, {"blocks.*.mlp.fc1_g.", "blocks.*.mlp.fc1_x."}},
                {Module::mlp_norm, {"blocks.*.mlp.norm."}},
                {Module::fc2, {"blocks.*.mlp.fc2."}},
                {Module::scale2, {"blocks.*.ls2.gamma"}, {"blocks.*.gamma_2"}},
                {Module::class_norm1, {"blocks_token_only.*.norm1."}},
                {Module::class_q, {"blocks_token_only.*.attn.q."}},
                {Module::class_k, {"blocks_token_only.*.attn.k."}},
                {Module::class_v, {"blocks_token_only.*.attn.v."}},
                {Module::class_projection, {"blocks_token_only.*.attn.proj."}},
                {Module::class_scale1, {"blocks_token_only.*.ls1.gamma"}, {"blocks_token_only.*.gamma_1"}},
                {Module::class_norm2, {"blocks_token_only.*.norm2."}},
                {Module::class_fc1, {"blocks_token_only.*.mlp.fc1."}},
                {Module::class_fc2, {"blocks_token_only.*.mlp.fc2."}},
                {Module::class_scale2, {"blocks_token_only.*.ls2.gamma"}, {"blocks_token_only.*.gamma_2"}},
                {Module::norm, {"norm."}},
                {Module::pool_latent, {"attn_pool.latent"}},
                {Module::pool_q, {"attn_pool.q."}},
                {Module::pool_kv, {"attn_pool.kv."}},
                {Module::pool_projection, {"attn_pool.proj."}},
                {Module::pool_norm, {"attn_pool.norm."}},
                {Module::pool_fc1, {"attn_pool.mlp.fc1."}},
                {Module::pool_fc2, {"attn_pool.mlp.fc2."}},
                {Module::fc_norm, {"fc_norm."}},
                {Module::pre_logits, {"pre_logits.fc."}},
                {Module::head, {"head."}},
                {Module::distillation_head, {"head_dist."}}},
      .unused = {"patch_embed.backbone.*.num_batches_tracked"},
      .position_spans = {PositionSpan::all, PositionSpan::patches},
      .position_resize = PositionResize::bicubic_antialias,
      .adjust = adjust_timm,
  };
  return family;
}

namespace {

// MobileCLIP's image tower, whose last convolution makes the patches.
const Family& timm_convolutions() {
  static const Family family = [] {
    Family convolutions = timm();
    convolutions.name = "timm_convolutions";
    convolutions.title = "timm ViT behind convolutions";
    convolutions.landmarks.front() = "patch_embed.backbone.2.conv.weight";
    std::ranges::find(convolutions.paths, Module::patch, &ModulePath::module)->parts = {
        "patch_embed.backbone.2.conv."};
    return convolutions;
  }();
  return family;
}

// timm's for pictures of any size, of which those of one size at a time are read.
const Family& timm_naflex() {
  static const Family family = [] {
    Family naflex = timm();
    naflex.name = "timm_naflex";
    naflex.title = "timm NaFlexViT";
    naflex.landmarks.front() = "embeds.proj.weight";
    const auto at = [&](Module module) -> ModulePath& {
      return *std::ranges::find(naflex.paths, module, &ModulePath::module);
    };
    at(Module::patch).parts = {"embeds.proj."};
    at(Module::patch_norm).parts = {"embeds.norm."};
    at(Module::class_token).parts = {"embeds.cls_token"};
    at(Module::registers).parts = {"embeds.reg_token"};
    at(Module::positions) = {
        Module::positions, {"embeds.pos_embed"}, {"embeds.pos_embed_y", "embeds.pos_embed_x"}};
    naflex.position_spans = {PositionSpan::patches};
    naflex.linear_patches = naflex.channels_last = naflex.position_grid = true;
    return naflex;
  }();
  return family;
}

// SAM's image encoder, whose positions are a grid.
const Family& timm_sam() {
  static const Family family = [] {
    Family sam = timm();
    sam.name = "timm_sam";
    sam.title = "timm SAM";
    sam.landmarks.emplace_back("blocks.0.attn.rel_pos_h");
    const auto at = [&](Module module) -> ModulePath& {
      return *std::ranges::find(sam.paths, module, &ModulePath::module);
    };
    at(Module::norm).parts = {"neck."};
    at(Module::head).parts = {"head.fc."};
    // As Vitrine writes them.
    at(Module::norm).alternative = {"norm."};
    at(Module::head).alternative = {"head."};
    sam.paths.insert(sam.paths.end(), {{Module::relative_height, {"blocks.*.attn.rel_pos_h"}},
                                       {Module::relative_width, {"blocks.*.attn.rel_pos_w"}},
                                       {Module::neck_linear, {"neck.0."}},
                                       {Module::neck_norm1, {"neck.1."}},
                                       {Module::neck_convolution, {"neck.2."}},
                                       {Module::neck_norm2, {"neck.3."}}});
    sam.position_spans = {PositionSpan::patches};
    sam.position_grid = true;
    sam.eps = 1e-5;
    sam.adjust = [](const TensorShapes&, ViTConfig& c) { c.final_eps = 1e-6; };
    return sam;
  }();
  return family;
}

const Family& torchvision() {
  static const Family family{
      .name = "torchvision",
      .title = "torchvision ViT",
      .landmarks = {"conv_proj.weight", "encoder.layers.encoder_layer_0.ln_1.weight"},
      .paths = {{Module::patch, {"conv_proj."}},
                {Module::class_token, {"class_token"}},
                {Module::positions, {"encoder.pos_embedding"}},
                {Module::norm1, {"encoder.layers.encoder_layer_*.ln_1."}},
                {Module::qkv, {"encoder.layers.encoder_layer_*.self_attention.in_proj_"}},
                {Module::projection, {"encoder.layers.encoder_layer_*.self_attention.out_proj."}},
                {Module::norm2, {"encoder.layers.encoder_layer_*.ln_2."}},
                {Module::fc1,
                 {"encoder.layers.encoder_layer_*.mlp.0."},
                 {"encoder.layers.encoder_layer_*.mlp.linear_1."}},
                {Module::fc2,
                 {"encoder.layers.encoder_layer_*.mlp.3."},
                 {"encoder.layers.encoder_layer_*.mlp.linear_2."}},
                {Module::norm, {"encoder.ln."}},
                {Module::pre_logits, {"heads.pre_logits."}},
                {Module::head, {"heads.head."}}},
      .whole_patches = true,
      .position_resize = PositionResize::bicubic_corners,
  };
  return family;
}

// Names don't say how large the image is (its positions are computed) or how many channels it has:
// seven patches a side, and one channel where that makes the patches square, else three.
void adjust_myvit(const TensorShapes& tensors, ViTConfig& c) {
  const uint64_t inputs = tensors.at("linear_mapper.weight").back();
  for (const uint64_t channels : {uint64_t{1}, uint64_t{3}}) {
    const uint64_t side = static_cast<uint64_t>(
        std::llround(std::sqrt(static_cast<double>(inputs) / static_cast<double>(channels))));
    if (channels * side * side != inputs) continue;
    c.channels = channels;
    c.patch_height = c.patch_width = side;
    break;
  }
  c.image_height = 7 * c.patch_height;
  c.image_width = 7 * c.patch_width;
  c.positions = Positions::sincos;
  c.softmax_output = c.classes > 0;
  c.init = InitRule::torch;
}

const Family& myvit() {
  static const Family family{
      .name = "myvit",
      .title = "MyViT",
      .landmarks = {"linear_mapper.weight", "blocks.0.mhsa.q_mappings.0.weight"},
      .paths = {{Module::patch, {"linear_mapper."}},
                {Module::class_token, {"class_token"}},
                {Module::norm1, {"blocks.*.norm1."}},
                {Module::q, {"blocks.*.mhsa.q_mappings.#."}},
                {Module::k, {"blocks.*.mhsa.k_mappings.#."}},
                {Module::v, {"blocks.*.mhsa.v_mappings.#."}},
                {Module::norm2, {"blocks.*.norm2."}},
                {Module::fc1, {"blocks.*.mlp.0."}},
                {Module::fc2, {"blocks.*.mlp.2."}},
                {Module::head, {"mlp.0."}}},
      .unused = {"positional_embeddings"},
      .linear_patches = true,
      .whole_patches = true,
      .token_rank = 2,
      .eps = 1e-5,
      .adjust = adjust_myvit,
  };
  return family;
}

}  // namespace

std::span<const Family* const> all_families() {
  // SigLIP's names are CLIP's without one, so the others of CLIP's kind come first, those that have one more
  // before it, and InternVL before ViT.
  static const std::array<const Family*, 35> families{&meta_dinov3(),
                                                      &timm_sam(),
                                                      &hugging_face_sam(),
                                                      &hugging_face_vitdet(),
                                                      &hugging_face_tipsv2(),
                                                      &timm(),
                                                      &timm_parallel(),
                                                      &timm_branches(),
                                                      &timm_convolutions(),
                                                      &timm_naflex(),
                                                      &hugging_face_dinov3(),
                                                      &hugging_face_beit(),
                                                      &hugging_face_internvl(),
                                                      &hugging_face_qianfan(),
                                                      &hugging_face_ast(),
                                                      &hugging_face_yolos(),
                                                      &hugging_face_video(),
                                                      &hugging_face_vit(),
                                                      &hugging_face_pixio(),
                                                      &hugging_face_dinov2(),
                                                      &hugging_face_mlcd(),
                                                      &hugging_face_clip(),
                                                      &hugging_face_git(),
                                                      &hugging_face_bridgetower(),
                                                      &hugging_face_owlvit(),
                                                      &hugging_face_blip(),
                                                      &hugging_face_janus(),
                                                      &hugging_face_siglip2(),
                                                      &hugging_face_siglip(),
                                                      &hugging_face_aimv2(),
                                                      &hugging_face_ovis2(),
                                                      &hugging_face_mgpstr(),
                                                      &hugging_face_pixtral(),
                                                      &torchvision(),
                                                      &myvit()};
  return families;
}

}  // namespace vitrine
