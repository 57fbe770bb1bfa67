#include "model/vit/parameters.h"

#include <cmath>

#include "model/vit/vision_transformer.h"

namespace vitrine {

bool Parameter::is_norm() const {
  return module == Module::patch_norm || module == Module::pre_norm || module == Module::norm1 ||
         module == Module::norm2 || module == Module::norm || module == Module::pool_norm ||
         module == Module::fc_norm || module == Module::q_norm || module == Module::k_norm ||
         module == Module::class_norm1 || module == Module::class_norm2 || module == Module::sub_norm ||
         module == Module::attention_norm || module == Module::mlp_norm || module == Module::neck_norm1 ||
         module == Module::neck_norm2;
}

bool Parameter::is_matrix() const {
  if (module == Module::stem) return false;  // no product reads it as it is
  return module == Module::stem_kernel || module == Module::neck_kernel ||
         (leaf == Leaf::weight && !is_norm());
}

std::string_view canonical_path(Module module) {
  switch (module) {
    case Module::patch:
      return "patch_embed.proj";
    case Module::patch_norm:
      return "patch_embed.norm";
    case Module::stem:
    case Module::stem_kernel:
    case Module::stem_shift:
      return "patch_embed.backbone";
    case Module::class_token:
      return "cls_token";
    case Module::distillation_token:
      return "dist_token";
    case Module::registers:
      return "reg_token";
    case Module::detection_tokens:
      return "det_token";
    case Module::positions:
      return "pos_embed";
    case Module::block_positions:
      return "blocks.*.pos_embed";
    case Module::rotary:
      return "rope";
    case Module::rotary_frequencies:
      return "rope.freqs";
    case Module::rotary_class:
      return "rope.class_token";
    case Module::relative_bias:
      return "blocks.*.attn.rel_pos";
    case Module::relative_fc1:
      return "blocks.*.attn.rel_pos.fc1";
    case Module::relative_fc2:
      return "blocks.*.attn.rel_pos.fc2";
    case Module::shared_relative_bias:
      return "rel_pos";
    case Module::shared_relative_fc1:
      return "rel_pos.fc1";
    case Module::shared_relative_fc2:
      return "rel_pos.fc2";
    case Module::relative_height:
      return "blocks.*.attn.rel_pos_h";
    case Module::relative_width:
      return "blocks.*.attn.rel_pos_w";
    case Module::neck_linear:
      return "neck.0";
    case Module::neck_norm1:
      return "neck.1";
    case Module::neck_kernel:
    case Module::neck_convolution:
      return "neck.2";
    case Module::neck_norm2:
      return "neck.3";
    case Module::pre_norm:
      return "norm_pre";
    case Module::norm1:
      return "blocks.*.norm1";
    case Module::qkv:
      return "blocks.*.attn.qkv";
    case Module::qkv_mask:
      return "blocks.*.attn.qkv.bias_mask";
    case Module::q:
      return "blocks.*.attn.q";
    case Module::k:
      return "blocks.*.attn.k";
    case Module::v:
      return "blocks.*.attn.v";
    case Module::q_norm:
      return "blocks.*.attn.q_norm";
    case Module::k_norm:
      return "blocks.*.attn.k_norm";
    case Module::lambda:
      return "blocks.*.attn.lambda";
    case Module::lambda_q1:
      return "blocks.*.attn.lambda_q1";
    case Module::lambda_k1:
      return "blocks.*.attn.lambda_k1";
    case Module::lambda_q2:
      return "blocks.*.attn.lambda_q2";
    case Module::lambda_k2:
      return "blocks.*.attn.lambda_k2";
    case Module::sub_norm:
      return "blocks.*.attn.sub_norm";
    case Module::talking_before:
      return "blocks.*.attn.proj_l";
    case Module::talking_after:
      return "blocks.*.attn.proj_w";
    case Module::attention_norm:
      return "blocks.*.attn.norm";
    case Module::projection:
      return "blocks.*.attn.proj";
    case Module::scale1:
      return "blocks.*.ls1.gamma";
    case Module::norm2:
      return "blocks.*.norm2";
    case Module::fc1:
      return "blocks.*.mlp.fc1";
    case Module::mlp_norm:
      return "blocks.*.mlp.norm";
    case Module::fc2:
      return "blocks.*.mlp.fc2";
    case Module::scale2:
      return "blocks.*.ls2.gamma";
    case Module::class_norm1:
      return "blocks_token_only.*.norm1";
    case Module::class_q:
      return "blocks_token_only.*.attn.q";
    case Module::class_k:
      return "blocks_token_only.*.attn.k";
    case Module::class_v:
      return "blocks_token_only.*.attn.v";
    case Module::class_projection:
      return "blocks_token_only.*.attn.proj";
    case Module::class_scale1:
      return "blocks_token_only.*.ls1.gamma";
    case Module::class_norm2:
      return "blocks_token_only.*.norm2";
    case Module::class_fc1:
      return "blocks_token_only.*.mlp.fc1";
    case Module::class_fc2:
      return "blocks_token_only.*.mlp.fc2";
    case Module::class_scale2:
      return "blocks_token_only.*.ls2.gamma";
    case Module::norm:
      return "norm";
    case Module::pool_latent:
      return "attn_pool.latent";
    case Module::pool_q:
      return "attn_pool.q";
    case Module::pool_kv:
      return "attn_pool.kv";
    case Module::pool_projection:
      return "attn_pool.proj";
    case Module::pool_norm:
      return "attn_pool.norm";
    case Module::pool_fc1:
      return "attn_pool.mlp.fc1";
    case Module::pool_fc2:
      return "attn_pool.mlp.fc2";
    case Module::fc_norm:
      return "fc_norm";
    case Module::pre_logits:
      return "pre_logits.fc";
    case Module::embedding:
      return "visual_projection";
    case Module::head:
      return "head";
    case Module::distillation_head:
      return "head_dist";
  }
  return "?";
}

std::vector<Parameter> parameters_of(const ViTConfig& config) {
  const VisionTransformer model(config);
  return {model.parameters().begin(), model.parameters().end()};
}

std::vector<float> sincos_positions(uint64_t rows, uint64_t width) {
  std::vector<float> table(rows * width);
  for (uint64_t i = 0; i < rows; ++i) {
    for (uint64_t j = 0; j < width; ++j) {
      const double exponent = static_cast<double>(j - j % 2) / static_cast<double>(width);
      const double angle = static_cast<double>(i) / std::pow(10000.0, exponent);
      table[i * width + j] = static_cast<float>(j % 2 ? std::cos(angle) : std::sin(angle));
    }
  }
  return table;
}

}  // namespace vitrine
