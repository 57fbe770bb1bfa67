#include "model/families/hugging_face_tables.h"

#include <algorithm>

namespace vitrine {
namespace {

// The classifiers see the class token beside the mean of the patches.
void adjust_dinov2(const TensorShapes& tensors, ViTConfig& c) {
  if (c.registers == 0) c.position_span = PositionSpan::all;
  // The one with registers alone resamples with antialias.
  c.position_resize = c.registers ? PositionResize::bicubic_antialias : PositionResize::bicubic;
  const auto classifier = tensors.find("classifier.weight");
  if (classifier != tensors.end() && classifier->second.back() == 2 * c.dim) c.pool = Pool::token_and_mean;
}

// The last norm is for the pooled class token only; a classifier sees the mean of patches without it.
void adjust_clip(const TensorShapes&, ViTConfig& c) {
  c.activation = Activation::gelu_quick;
  c.pool = c.classes ? Pool::mean : Pool::token;
  c.fc_norm = c.classes == 0;
  if (c.classes) c.embedding_size = 0;
}

// A classifier sees the mean of the patches, although the file holds the attention pooling as well.
void adjust_siglip(const TensorShapes&, ViTConfig& c) {
  c.activation = Activation::gelu_tanh;
  if (c.classes) c.pool = Pool::mean;
}

// Spectrograms are of one channel and seldom square.
bool has_overlapping_patches(const TensorShapes& tensors, const std::string& prefix) {
  const auto patch = tensors.find(prefix + "embeddings.patch_embeddings.projection.weight");
  const auto positions = tensors.find(prefix + "embeddings.position_embeddings");
  if (patch->second.size() != 4 || patch->second[1] != 1) return false;
  if (positions == tensors.end() || positions->second.size() != 3 || positions->second[1] < 3) return true;
  return whole_root(positions->second[1] - 2) == 0;
}

bool has_tubelets(const TensorShapes& tensors, const std::string& prefix) {
  return tensors.at(prefix + "embeddings.patch_embeddings.projection.weight").size() == 5;
}

bool has_linear_patches(const TensorShapes& tensors, const std::string& prefix) {
  return tensors.at(prefix + "embeddings.patch_embedding.weight").size() == 2;
}

}  // namespace

const Family& hugging_face_vit() {
  static const Family family{
      .name = "hf",
      .title = "Hugging Face ViT or DeiT",
      .landmarks = {"embeddings.patch_embeddings.projection.weight",
                    "encoder.layer.0.layernorm_before.weight"},
      .paths = {{Module::patch, {"~embeddings.patch_embeddings.projection."}},
                {Module::class_token, {"~embeddings.cls_token"}},
                {Module::distillation_token, {"~embeddings.distillation_token"}},
                {Module::positions, {"~embeddings.position_embeddings"}},
                {Module::norm1, {"~encoder.layer.*.layernorm_before."}},
                {Module::qkv,
                 {"~encoder.layer.*.attention.attention.query.", "~encoder.layer.*.attention.attention.key.",
                  "~encoder.layer.*.attention.attention.value."}},
                {Module::projection, {"~encoder.layer.*.attention.output.dense."}},
                {Module::norm2, {"~encoder.layer.*.layernorm_after."}},
                {Module::fc1, {"~encoder.layer.*.intermediate.dense."}},
                {Module::fc2, {"~encoder.layer.*.output.dense."}},
                {Module::norm, {"~layernorm."}},
                {Module::head, {"classifier."}, {"cls_classifier."}},
                {Module::distillation_head, {"distillation_classifier."}}},
      .unused = {"pooler.dense.weight", "pooler.dense.bias", "embeddings.mask_token",
                 "embeddings.position_ids"},
      .eps = 1e-12,
  };
  return family;
}

const Family& hugging_face_ast() {
  static const Family family = [] {
    Family ast = hugging_face_vit();
    ast.name = "hf_ast";
    ast.title = "Hugging Face Audio Spectrogram Transformer";
    ast.landmarks.emplace_back("embeddings.distillation_token");
    ast.fits = has_overlapping_patches;
    ast.told_by_config = "the strides of its patches and the size of its spectrograms are";
    std::erase_if(ast.paths, [](const ModulePath& path) { return path.module == Module::distillation_head; });
    *std::ranges::find(ast.paths, Module::head, &ModulePath::module) = {Module::head, {"classifier.dense."}};
    ast.paths.push_back({Module::fc_norm, {"classifier.layernorm."}});
    ast.unused.clear();
    ast.spare = {Module::fc_norm};
    return ast;
  }();
  return family;
}

const Family& hugging_face_yolos() {
  static const Family family = [] {
    Family yolos = hugging_face_vit();
    yolos.name = "hf_yolos";
    yolos.title = "Hugging Face YOLOS";
    yolos.landmarks.emplace_back("embeddings.detection_tokens");
    std::erase_if(yolos.paths, [](const ModulePath& path) {
      return path.module == Module::head || path.module == Module::distillation_head;
    });
    yolos.paths.push_back({Module::detection_tokens, {"~embeddings.detection_tokens"}});
    yolos.paths.push_back({Module::block_positions, {"~encoder.mid_position_embeddings"}});
    yolos.unused.insert(yolos.unused.end(), {"class_labels_classifier.*", "bbox_predictor.*"});
    return yolos;
  }();
  return family;
}

const Family& hugging_face_video() {
  static const Family family = [] {
    Family video = hugging_face_vit();
    video.name = "hf_video";
    video.title = "Hugging Face VideoMAE or ViViT";
    video.fits = has_tubelets;
    video.told_by_config = "how many frames it sees and how large they are is";
    std::ranges::find(video.paths, Module::qkv, &ModulePath::module)->biases = {
        "~encoder.layer.*.attention.attention.q_bias", "", "~encoder.layer.*.attention.attention.v_bias"};
    video.paths.push_back({Module::fc_norm, {"fc_norm."}});
    return video;
  }();
  return family;
}

const Family& hugging_face_dinov2() {
  static const Family family{
      .name = "hf_dinov2",
      .title = "Hugging Face DINOv2",
      .landmarks = {"embeddings.patch_embeddings.projection.weight", "encoder.layer.0.norm1.weight"},
      .paths = {{Module::patch, {"~embeddings.patch_embeddings.projection."}},
                {Module::class_token, {"~embeddings.cls_token"}},
                {Module::registers, {"~embeddings.register_tokens"}},
                {Module::positions, {"~embeddings.position_embeddings"}},
                {Module::norm1, {"~encoder.layer.*.norm1."}},
                {Module::qkv,
                 {"~encoder.layer.*.attention.attention.query.", "~encoder.layer.*.attention.attention.key.",
                  "~encoder.layer.*.attention.attention.value."}},
                {Module::projection, {"~encoder.layer.*.attention.output.dense."}},
                {Module::scale1, {"~encoder.layer.*.layer_scale1.lambda1"}},
                {Module::norm2, {"~encoder.layer.*.norm2."}},
                {Module::fc1, {"~encoder.layer.*.mlp.fc1."}, {"~encoder.layer.*.mlp.weights_in."}},
                {Module::fc2, {"~encoder.layer.*.mlp.fc2."}, {"~encoder.layer.*.mlp.weights_out."}},
                {Module::scale2, {"~encoder.layer.*.layer_scale2.lambda1"}},
                {Module::norm, {"~layernorm."}},
                {Module::head, {"classifier."}}},
      .unused = {"embeddings.mask_token"},
      .position_spans = {PositionSpan::class_and_patches},
      .adjust = adjust_dinov2,
  };
  return family;
}

const Family& hugging_face_clip() {
  static const Family family{
      .name = "hf_clip",
      .title = "Hugging Face CLIP",
      .landmarks = {"embeddings.patch_embedding.weight", "encoder.layers.0.layer_norm1.weight",
                    "pre_layrnorm.weight"},
      .paths = {{Module::patch, {"~embeddings.patch_embedding."}},
                {Module::class_token, {"~embeddings.class_embedding"}},
                {Module::positions, {"~embeddings.position_embedding.weight"}},
                {Module::pre_norm, {"~pre_layrnorm."}},  // as it is published
                {Module::norm1, {"~encoder.layers.*.layer_norm1."}},
                {Module::qkv,
                 {"~encoder.layers.*.self_attn.q_proj.", "~encoder.layers.*.self_attn.k_proj.",
                  "~encoder.layers.*.self_attn.v_proj."}},
                {Module::projection, {"~encoder.layers.*.self_attn.out_proj."}},
                {Module::norm2, {"~encoder.layers.*.layer_norm2."}},
                {Module::fc1, {"~encoder.layers.*.mlp.fc1."}},
                {Module::fc2, {"~encoder.layers.*.mlp.fc2."}},
                {Module::fc_norm, {"~post_layernorm."}},
                {Module::embedding, {"visual_projection."}},
                {Module::head, {"classifier."}}},
      .unused = {"text_model.*", "text_projection.weight", "logit_scale", "embeddings.position_ids"},
      .spare = {Module::fc_norm, Module::embedding},
      .token_rank = 1,
      .eps = 1e-5,
      .adjust = adjust_clip,
  };
  return family;
}

const Family& hugging_face_siglip() {
  static const Family family{
      .name = "hf_siglip",
      .title = "Hugging Face SigLIP",
      .landmarks = {"embeddings.patch_embedding.weight", "encoder.layers.0.layer_norm1.weight",
                    "post_layernorm.weight"},
      .paths = {{Module::patch, {"~embeddings.patch_embedding."}},
                {Module::positions, {"~embeddings.position_embedding.weight"}},
                {Module::norm1, {"~encoder.layers.*.layer_norm1."}},
                {Module::qkv,
                 {"~encoder.layers.*.self_attn.q_proj.", "~encoder.layers.*.self_attn.k_proj.",
                  "~encoder.layers.*.self_attn.v_proj."}},
                {Module::projection, {"~encoder.layers.*.self_attn.out_proj."}},
                {Module::norm2, {"~encoder.layers.*.layer_norm2."}},
                {Module::fc1, {"~encoder.layers.*.mlp.fc1."}},
                {Module::fc2, {"~encoder.layers.*.mlp.fc2."}},
                {Module::norm, {"~post_layernorm."}},
                {Module::pool_latent, {"~head.probe"}},
                {Module::pool_q, {"~head.attention.in_proj_"}, {}, {0, 1, 3}},
                {Module::pool_kv, {"~head.attention.in_proj_"}, {}, {1, 3, 3}},
                {Module::pool_projection, {"~head.attention.out_proj."}},
                {Module::pool_norm, {"~head.layernorm."}},
                {Module::pool_fc1, {"~head.mlp.fc1."}},
                {Module::pool_fc2, {"~head.mlp.fc2."}},
                {Module::head, {"classifier."}}},
      .unused = {"text_model.*", "logit_scale", "logit_bias", "embeddings.position_ids"},
      .spare = {Module::pool_latent, Module::pool_q, Module::pool_projection, Module::pool_norm,
                Module::pool_fc1, Module::pool_fc2},
      .token_rank = 1,
      .adjust = adjust_siglip,
  };
  return family;
}

const Family& hugging_face_siglip2() {
  static const Family family = [] {
    Family siglip = hugging_face_siglip();
    siglip.name = "hf_siglip2";
    siglip.title = "Hugging Face SigLIP 2 NaFlex";
    siglip.fits = has_linear_patches;
    siglip.linear_patches = siglip.channels_last = true;
    siglip.position_resize = PositionResize::bilinear_antialias;
    return siglip;
  }();
  return family;
}

}  // namespace vitrine
