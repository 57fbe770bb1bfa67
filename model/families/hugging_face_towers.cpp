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
                 "language_model.*", "language_projection.*", "embeddings.position_ids"},
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

}  // namespace vitrine
