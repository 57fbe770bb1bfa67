// Vision towers of transformers' models of pictures and words that are called otherwise than CLIP's.
#include <algorithm>

#include "model/families/hugging_face_tables.h"

namespace vitrine {
namespace {

// The last norm is for the pooled class token only.
void adjust_owlvit(const TensorShapes&, ViTConfig& c) {
  c.activation = Activation::gelu_quick;
  c.pool = Pool::token;
  c.fc_norm = true;
}

// One norm behind all tokens, and the same again behind the pooled one.
void adjust_blip(const TensorShapes&, ViTConfig& c) {
  c.pool = Pool::token;
  c.final_norm = c.fc_norm = true;
}

// Heads of 128, as all that are published have.
void adjust_aimv2(const TensorShapes&, ViTConfig& c) {
  if (c.dim % 128 == 0) c.heads = c.dim / 128;
  if (c.positions == Positions::none) c.positions = Positions::sincos_grid;
}

// One norm behind all tokens, and the same again behind the first, which is a patch.
void adjust_janus(const TensorShapes&, ViTConfig& c) {
  c.pool = Pool::first;
  c.final_norm = c.fc_norm = true;
}

// The last norm is for the pooled class token only, which is turned as the patches are.
void adjust_mlcd(const TensorShapes&, ViTConfig& c) {
  c.rotary = Rotary::halves;
  c.rotary_class = true;
  c.pool = Pool::token;
  c.fc_norm = true;
}

// The last norm is for all tokens.
void adjust_git(const TensorShapes&, ViTConfig& c) {
  c.activation = Activation::gelu_quick;
  c.pool = Pool::token;
}

// Heads of 64, as its class has them whatever the width.
void adjust_bridgetower(const TensorShapes&, ViTConfig& c) {
  c.activation = Activation::gelu_quick;
  c.heads = c.dim / 64;
  c.pool = Pool::token;
}

// Its class tokens are registers here, of which the mean is the result.
void adjust_pixio(const TensorShapes&, ViTConfig& c) { c.pool = Pool::prefix; }

void adjust_pixtral(const TensorShapes&, ViTConfig& c) {
  c.rotary = Rotary::halves;
  c.rotary_alternating = true;
}

}  // namespace

const Family& hugging_face_owlvit() {
  static const Family family = [] {
    Family owlvit = hugging_face_clip();
    owlvit.name = "hf_owlvit";
    owlvit.title = "Hugging Face OWL-ViT";
    owlvit.landmarks.back() = "pre_layernorm.weight";
    std::erase_if(owlvit.paths, [](const ModulePath& path) { return path.module == Module::head; });
    std::ranges::find(owlvit.paths, Module::pre_norm, &ModulePath::module)->parts = {"~pre_layernorm."};
    owlvit.spare.clear();
    owlvit.adjust = adjust_owlvit;
    return owlvit;
  }();
  return family;
}

const Family& hugging_face_git() {
  static const Family family = [] {
    Family git = hugging_face_clip();
    git.name = "hf_git";
    git.title = "Hugging Face GIT tower";
    std::erase_if(git.paths, [](const ModulePath& path) {
      return path.module == Module::fc_norm || path.module == Module::embedding ||
             path.module == Module::head;
    });
    git.paths.push_back({Module::norm, {"~post_layernorm."}});
    git.unused.clear();
    git.spare.clear();
    git.adjust = adjust_git;
    git.outer = "git.image_encoder.";
    return git;
  }();
  return family;
}

const Family& hugging_face_bridgetower() {
  static const Family family{
      .name = "hf_bridgetower",
      .title = "Hugging Face BridgeTower tower",
      .landmarks = {"embeddings.patch_embedding.weight", "transformer.resblocks.0.ln_1.weight"},
      .paths = {{Module::patch, {"~embeddings.patch_embedding."}},
                {Module::class_token, {"~embeddings.class_embedding"}},
                {Module::positions, {"~embeddings.position_embedding.weight"}},
                {Module::pre_norm, {"~ln_pre."}},
                {Module::norm1, {"~transformer.resblocks.*.ln_1."}},
                {Module::qkv, {"~transformer.resblocks.*.attn.in_proj_"}},
                {Module::projection, {"~transformer.resblocks.*.attn.out_proj."}},
                {Module::norm2, {"~transformer.resblocks.*.ln_2."}},
                {Module::fc1, {"~transformer.resblocks.*.mlp.c_fc."}},
                {Module::fc2, {"~transformer.resblocks.*.mlp.c_proj."}},
                {Module::norm, {"~ln_post."}}},
      .token_rank = 1,
      .eps = 1e-5,
      .adjust = adjust_bridgetower,
  };
  return family;
}

const Family& hugging_face_blip() {
  static const Family family{
      .name = "hf_blip",
      .title = "Hugging Face BLIP",
      .landmarks = {"embeddings.patch_embedding.weight", "encoder.layers.0.layer_norm1.weight",
                    "encoder.layers.0.self_attn.projection.weight"},
      .paths = {{Module::patch, {"~embeddings.patch_embedding."}},
                {Module::class_token, {"~embeddings.class_embedding"}},
                {Module::positions, {"~embeddings.position_embedding"}},
                {Module::norm1, {"~encoder.layers.*.layer_norm1."}},
                {Module::qkv, {"~encoder.layers.*.self_attn.qkv."}},
                {Module::projection, {"~encoder.layers.*.self_attn.projection."}},
                {Module::norm2, {"~encoder.layers.*.layer_norm2."}},
                {Module::fc1, {"~encoder.layers.*.mlp.fc1."}},
                {Module::fc2, {"~encoder.layers.*.mlp.fc2."}},
                {Module::norm, {"~post_layernorm."}},
                {Module::fc_norm, {"~post_layernorm."}},
                {Module::embedding, {"visual_projection."}}},
      .unused = {"text_model.*", "text_encoder.*", "text_decoder.*", "text_projection.*", "text_proj.*",
                 "vision_proj.*", "itm_head.*", "logit_scale", "qformer.*", "query_tokens",
                 "language_model.*", "language_projection.*", "embeddings.position_ids",
                 // The words of BLIP-2's retrieval.
                 "vision_projection.*", "embeddings.word_embeddings.weight",
                 "embeddings.position_embeddings.weight"},
      .eps = 1e-5,
      .adjust = adjust_blip,
  };
  return family;
}

const Family& hugging_face_internvl() {
  static const Family family{
      .name = "hf_internvl",
      .title = "Hugging Face InternVL tower",
      .landmarks = {"embeddings.patch_embeddings.projection.weight",
                    "encoder.layer.0.layernorm_before.weight",
                    "encoder.layer.0.attention.projection_layer.weight"},
      .paths = {{Module::patch, {"~embeddings.patch_embeddings.projection."}},
                {Module::class_token, {"~embeddings.cls_token"}},
                {Module::positions, {"~embeddings.position_embeddings"}},
                {Module::norm1, {"~encoder.layer.*.layernorm_before."}},
                {Module::qkv,
                 {"~encoder.layer.*.attention.q_proj.", "~encoder.layer.*.attention.k_proj.",
                  "~encoder.layer.*.attention.v_proj."}},
                {Module::projection, {"~encoder.layer.*.attention.projection_layer."}},
                {Module::scale1, {"~encoder.layer.*.lambda_1"}},
                {Module::norm2, {"~encoder.layer.*.layernorm_after."}},
                {Module::fc1, {"~encoder.layer.*.mlp.fc1."}},
                {Module::fc2, {"~encoder.layer.*.mlp.fc2."}},
                {Module::scale2, {"~encoder.layer.*.lambda_2"}},
                {Module::norm, {"~layernorm."}}},
      .unused = {"embeddings.mask_token"},
  };
  return family;
}

const Family& hugging_face_qianfan() {
  static const Family family{
      .name = "hf_qianfan",
      .title = "Hugging Face Qianfan-OCR tower",
      .landmarks = {"embeddings.patch_embeddings.projection.weight", "layers.0.layernorm_before.weight",
                    "layers.0.attention.projection_layer.weight"},
      .paths = {{Module::patch, {"~embeddings.patch_embeddings.projection."}},
                {Module::class_token, {"~embeddings.cls_token"}},
                {Module::positions, {"~embeddings.position_embeddings"}},
                {Module::norm1, {"~layers.*.layernorm_before."}},
                {Module::qkv,
                 {"~layers.*.attention.q_proj.", "~layers.*.attention.k_proj.",
                  "~layers.*.attention.v_proj."}},
                {Module::projection, {"~layers.*.attention.projection_layer."}},
                {Module::scale1, {"~layers.*.lambda_1"}},
                {Module::norm2, {"~layers.*.layernorm_after."}},
                {Module::fc1, {"~layers.*.mlp.fc1."}},
                {Module::fc2, {"~layers.*.mlp.fc2."}},
                {Module::scale2, {"~layers.*.lambda_2"}},
                {Module::norm, {"~layernorm."}}},
      .unused = {"embeddings.mask_token"},
  };
  return family;
}

const Family& hugging_face_tipsv2() {
  static const Family family{
      .name = "hf_tipsv2",
      .title = "Hugging Face TIPS v2 tower",
      .landmarks = {"patch_embed.proj.weight", "blocks.0.mlp.c_fc.weight"},
      .paths = {{Module::patch, {"~patch_embed.proj."}},
                {Module::class_token, {"~cls_token"}},
                {Module::registers, {"~register_tokens"}},
                {Module::positions, {"~pos_embed"}},
                {Module::norm1, {"~blocks.*.norm1."}},
                {Module::qkv, {"~blocks.*.attn.qkv."}},
                {Module::projection, {"~blocks.*.attn.proj."}},
                {Module::scale1, {"~blocks.*.ls1.gamma"}},
                {Module::norm2, {"~blocks.*.norm2."}},
                {Module::fc1, {"~blocks.*.mlp.c_fc."}},
                {Module::fc2, {"~blocks.*.mlp.c_proj."}},
                {Module::scale2, {"~blocks.*.ls2.gamma"}},
                {Module::norm, {"~norm."}}},
      .unused = {"mask_token"},
      .position_spans = {PositionSpan::class_and_patches},
      .position_resize = PositionResize::bilinear_antialias,
  };
  return family;
}

const Family& hugging_face_aimv2() {
  static const Family family{
      .name = "hf_aimv2",
      .title = "Hugging Face AIMv2",
      .landmarks = {"embeddings.patch_embed.weight", "encoder.layers.0.rms_norm1.weight"},
      .paths = {{Module::patch, {"~embeddings.patch_embed."}},
                {Module::patch_norm, {"~embeddings.rms_norm."}},
                {Module::positions, {"~embeddings.position_embedding.weight"}},
                {Module::norm1, {"~encoder.layers.*.rms_norm1."}},
                {Module::qkv,
                 {"~encoder.layers.*.attention.q_proj.", "~encoder.layers.*.attention.k_proj.",
                  "~encoder.layers.*.attention.v_proj."}},
                {Module::projection, {"~encoder.layers.*.attention.out_proj."}},
                {Module::norm2, {"~encoder.layers.*.rms_norm2."}},
                {Module::fc1, {"~encoder.layers.*.ffn.gate_proj.", "~encoder.layers.*.ffn.up_proj."}},
                {Module::fc2, {"~encoder.layers.*.ffn.down_proj."}},
                {Module::norm, {"~rms_norm."}},
                {Module::pool_latent, {"~head.cls_token"}},
                {Module::pool_kv, {"~head.k_proj.", "~head.v_proj."}},
                {Module::pool_projection, {"~head.output_proj."}},
                {Module::embedding, {"visual_projection."}}},
      .unused = {"text_model.*", "text_projection.weight", "logit_scale"},
      .spare = {Module::embedding},
      .token_rank = 1,
      .eps = 1e-5,
      .position_resize = PositionResize::bicubic_antialias,  // timm's, transformers' has none
      .adjust = adjust_aimv2,
  };
  return family;
}

const Family& hugging_face_ovis2() {
  static const Family family = [] {
    Family ovis2 = hugging_face_aimv2();
    ovis2.name = "hf_ovis2";
    ovis2.title = "Hugging Face Ovis 2 tower";
    ovis2.landmarks.front() = "embeddings.patch_embedding.weight";
    std::ranges::find(ovis2.paths, Module::patch, &ModulePath::module)->parts = {
        "~embeddings.patch_embedding."};
    std::erase_if(ovis2.paths, [](const ModulePath& path) {
      return path.module == Module::pool_latent || path.module == Module::pool_kv ||
             path.module == Module::pool_projection || path.module == Module::embedding;
    });
    ovis2.unused.clear();
    ovis2.spare.clear();
    return ovis2;
  }();
  return family;
}

const Family& hugging_face_pixio() {
  static const Family family = [] {
    Family pixio = hugging_face_vit();
    pixio.name = "hf_pixio";
    pixio.title = "Hugging Face Pixio";
    pixio.landmarks = {"embeddings.patch_embeddings.projection.weight", "encoder.layer.0.norm1.weight",
                       "encoder.layer.0.intermediate.dense.weight"};
    std::erase_if(pixio.paths, [](const ModulePath& path) {
      return path.module == Module::class_token || path.module == Module::distillation_token ||
             path.module == Module::head || path.module == Module::distillation_head;
    });
    pixio.paths.push_back({Module::registers, {"~embeddings.cls_token"}});
    std::ranges::find(pixio.paths, Module::norm1, &ModulePath::module)->parts = {"~encoder.layer.*.norm1."};
    std::ranges::find(pixio.paths, Module::norm2, &ModulePath::module)->parts = {"~encoder.layer.*.norm2."};
    pixio.unused.clear();
    pixio.position_spans = {PositionSpan::all};
    pixio.eps = 1e-6;
    pixio.adjust = adjust_pixio;
    return pixio;
  }();
  return family;
}

const Family& hugging_face_mgpstr() {
  static const Family family{
      .name = "hf_mgpstr",
      .title = "Hugging Face MGP-STR",
      .landmarks = {"embeddings.proj.weight", "encoder.blocks.0.attn.qkv.weight"},
      .paths = {{Module::patch, {"~embeddings.proj."}},
                {Module::class_token, {"~embeddings.cls_token"}},
                {Module::positions, {"~embeddings.pos_embed"}},
                {Module::norm1, {"~encoder.blocks.*.norm1."}},
                {Module::qkv, {"~encoder.blocks.*.attn.qkv."}},
                {Module::projection, {"~encoder.blocks.*.attn.proj."}},
                {Module::norm2, {"~encoder.blocks.*.norm2."}},
                {Module::fc1, {"~encoder.blocks.*.mlp.fc1."}},
                {Module::fc2, {"~encoder.blocks.*.mlp.fc2."}}},
      .eps = 1e-5,
      .told_by_config = "how high its images are is",
  };
  return family;
}

const Family& hugging_face_janus() {
  static const Family family = [] {
    Family janus = hugging_face_siglip();
    janus.name = "hf_janus";
    janus.title = "Hugging Face Janus tower";
    janus.landmarks.back() = "encoder.layers.0.self_attn.projection_layer.weight";
    std::erase_if(janus.paths, [](const ModulePath& path) {
      return path.module >= Module::pool_latent && path.module <= Module::pool_fc2;
    });
    std::erase_if(janus.paths, [](const ModulePath& path) { return path.module == Module::head; });
    std::ranges::find(janus.paths, Module::projection, &ModulePath::module)->parts = {
        "~encoder.layers.*.self_attn.projection_layer."};
    janus.paths.push_back({Module::fc_norm, {"~post_layernorm."}});
    // The whole model's: what writes and what makes pictures.
    janus.unused = {
        "language_model.*",        "lm_head.*",        "aligner.*", "vqmodel.*", "generation_aligner.*",
        "generation_embeddings.*", "generation_head.*"};
    janus.spare.clear();
    janus.adjust = adjust_janus;
    return janus;
  }();
  return family;
}

const Family& hugging_face_mlcd() {
  static const Family family = [] {
    Family mlcd = hugging_face_clip();
    mlcd.name = "hf_mlcd";
    mlcd.title = "Hugging Face MLCD";
    mlcd.landmarks.back() = "class_pos_emb";
    std::erase_if(mlcd.paths, [](const ModulePath& path) {
      return path.module == Module::positions || path.module == Module::embedding ||
             path.module == Module::head;
    });
    mlcd.paths.push_back({Module::rotary_class, {"~class_pos_emb"}});
    mlcd.unused.clear();
    mlcd.spare.clear();
    mlcd.adjust = adjust_mlcd;
    return mlcd;
  }();
  return family;
}

const Family& hugging_face_pixtral() {
  static const Family family{
      .name = "hf_pixtral",
      .title = "Hugging Face Pixtral",
      .landmarks = {"patch_conv.weight", "ln_pre.weight", "transformer.layers.0.attention_norm.weight"},
      .paths = {{Module::patch, {"~patch_conv."}},
                {Module::pre_norm, {"~ln_pre."}},
                {Module::norm1, {"~transformer.layers.*.attention_norm."}},
                {Module::qkv,
                 {"~transformer.layers.*.attention.q_proj.", "~transformer.layers.*.attention.k_proj.",
                  "~transformer.layers.*.attention.v_proj."}},
                {Module::projection, {"~transformer.layers.*.attention.o_proj."}},
                {Module::norm2, {"~transformer.layers.*.ffn_norm."}},
                {Module::fc1,
                 {"~transformer.layers.*.feed_forward.gate_proj.",
                  "~transformer.layers.*.feed_forward.up_proj."}},
                {Module::fc2, {"~transformer.layers.*.feed_forward.down_proj."}}},
      .eps = 1e-5,
      .adjust = adjust_pixtral,
  };
  return family;
}

const Family& hugging_face_sam() {
  static const Family family{
      .name = "hf_sam",
      .title = "Hugging Face SAM",
      .landmarks = {"patch_embed.projection.weight", "layers.0.layer_norm1.weight",
                    "layers.0.attn.qkv.weight"},
      .paths = {{Module::patch, {"~patch_embed.projection."}},
                {Module::positions, {"~pos_embed"}},
                {Module::norm1, {"~layers.*.layer_norm1."}},
                {Module::qkv, {"~layers.*.attn.qkv."}},
                {Module::relative_height, {"~layers.*.attn.rel_pos_h"}},
                {Module::relative_width, {"~layers.*.attn.rel_pos_w"}},
                {Module::projection, {"~layers.*.attn.proj."}},
                {Module::norm2, {"~layers.*.layer_norm2."}},
                {Module::fc1, {"~layers.*.mlp.lin1."}},
                {Module::fc2, {"~layers.*.mlp.lin2."}},
                {Module::neck_linear, {"~neck.conv1."}},
                {Module::neck_norm1, {"~neck.layer_norm1."}},
                {Module::neck_convolution, {"~neck.conv2."}},
                {Module::neck_norm2, {"~neck.layer_norm2."}}},
      .position_spans = {PositionSpan::patches},
      .position_grid = true,
      .position_resize = PositionResize::bicubic_antialias,
  };
  return family;
}

const Family& hugging_face_vitdet() {
  static const Family family{
      .name = "hf_vitdet",
      .title = "Hugging Face ViTDet",
      .landmarks = {"embeddings.projection.weight", "encoder.layer.0.norm1.weight",
                    "encoder.layer.0.attention.qkv.weight"},
      .paths = {{Module::patch, {"~embeddings.projection."}},
                {Module::positions, {"~embeddings.position_embeddings"}},
                {Module::norm1, {"~encoder.layer.*.norm1."}},
                {Module::qkv, {"~encoder.layer.*.attention.qkv."}},
                {Module::relative_height, {"~encoder.layer.*.attention.rel_pos_h"}},
                {Module::relative_width, {"~encoder.layer.*.attention.rel_pos_w"}},
                {Module::projection, {"~encoder.layer.*.attention.proj."}},
                {Module::norm2, {"~encoder.layer.*.norm2."}},
                {Module::fc1, {"~encoder.layer.*.mlp.fc1."}},
                {Module::fc2, {"~encoder.layer.*.mlp.fc2."}}},
      .position_grid = true,
      .spare_positions = 1,  // a class token's, which it was trained with and has no more
      .told_by_config = "which of its blocks have windows and the size of its images are",
  };
  return family;
}

}  // namespace vitrine
