// DINOv3 as transformers names its tensors, and as its publisher does.
#include "model/families/hugging_face_tables.h"

namespace vitrine {
namespace {

// What all of them have and no name shows.
void adjust_dinov3(const TensorShapes&, ViTConfig& c) {
  c.rotary = Rotary::halves;
  c.rotary_base = 100;
  c.rotary_centered = true;
}

void adjust_meta_dinov3(const TensorShapes& tensors, ViTConfig& c) {
  adjust_dinov3(tensors, c);
  c.key_bias = !tensors.contains("blocks.0.attn.qkv.bias_mask");
}

}  // namespace

const Family& hugging_face_dinov3() {
  static const Family family{
      .name = "hf_dinov3",
      .title = "Hugging Face DINOv3",
      .landmarks = {"embeddings.patch_embeddings.weight", "layer.0.norm1.weight",
                    "layer.0.layer_scale1.lambda1"},
      .paths = {{Module::patch, {"~embeddings.patch_embeddings."}},
                {Module::class_token, {"~embeddings.cls_token"}},
                {Module::registers, {"~embeddings.register_tokens"}},
                {Module::norm1, {"~layer.*.norm1."}},
                {Module::qkv,
                 {"~layer.*.attention.q_proj.", "~layer.*.attention.k_proj.", "~layer.*.attention.v_proj."}},
                {Module::projection, {"~layer.*.attention.o_proj."}},
                {Module::scale1, {"~layer.*.layer_scale1.lambda1"}},
                {Module::norm2, {"~layer.*.norm2."}},
                {Module::fc1,
                 {"~layer.*.mlp.up_proj."},
                 {"~layer.*.mlp.gate_proj.", "~layer.*.mlp.up_proj."}},
                {Module::fc2, {"~layer.*.mlp.down_proj."}},
                {Module::scale2, {"~layer.*.layer_scale2.lambda1"}},
                {Module::norm, {"~norm."}}},
      .unused = {"embeddings.mask_token"},
      .eps = 1e-5,
      .adjust = adjust_dinov3,
  };
  return family;
}

const Family& meta_dinov3() {
  static const Family family{
      .name = "meta_dinov3",
      .title = "Meta DINOv3",
      .landmarks = {"rope_embed.periods", "patch_embed.proj.weight", "blocks.0.norm1.weight"},
      .paths = {{Module::patch, {"patch_embed.proj."}},
                {Module::class_token, {"cls_token"}},
                {Module::registers, {"storage_tokens"}},
                {Module::norm1, {"blocks.*.norm1."}},
                {Module::qkv, {"blocks.*.attn.qkv."}},
                {Module::projection, {"blocks.*.attn.proj."}},
                {Module::scale1, {"blocks.*.ls1.gamma"}},
                {Module::norm2, {"blocks.*.norm2."}},
                {Module::fc1, {"blocks.*.mlp.fc1."}, {"blocks.*.mlp.w1.", "blocks.*.mlp.w2."}},
                {Module::fc2, {"blocks.*.mlp.fc2."}, {"blocks.*.mlp.w3."}},
                {Module::scale2, {"blocks.*.ls2.gamma"}},
                {Module::norm, {"norm."}}},
      .unused = {"mask_token", "rope_embed.periods", "local_cls_norm.weight", "local_cls_norm.bias",
                 "blocks.*.attn.qkv.bias_mask"},
      .eps = 1e-5,
      .adjust = adjust_meta_dinov3,
      .periods = "rope_embed.periods",
  };
  return family;
}

}  // namespace vitrine
