// BEiT and Data2Vec as transformers names their tensors.
#include "model/families/hugging_face_tables.h"

namespace vitrine {
namespace {

// The mean of the patches is normalised, or where nothing is, the class token is the result.
void adjust_beit(const TensorShapes&, ViTConfig& c) { c.pool = c.fc_norm ? Pool::mean : Pool::token; }

}  // namespace

const Family& hugging_face_beit() {
  static const Family family{
      .name = "hf_beit",
      .title = "Hugging Face BEiT or Data2Vec",
      .landmarks = {"embeddings.patch_embeddings.projection.weight", "encoder.layer.0.lambda_1",
                    "encoder.layer.0.attention.attention.query.weight"},
      .paths =
          {{Module::patch, {"~embeddings.patch_embeddings.projection."}},
           {Module::class_token, {"~embeddings.cls_token"}},
           {Module::positions, {"~embeddings.position_embeddings"}},
           {Module::relative_bias,
            {"~encoder.layer.*.attention.attention.relative_position_bias.relative_position_bias_table"}},
           {Module::shared_relative_bias, {"~encoder.relative_position_bias.relative_position_bias_table"}},
           {Module::norm1, {"~encoder.layer.*.layernorm_before."}},
           {Module::qkv,
            {"~encoder.layer.*.attention.attention.query.", "~encoder.layer.*.attention.attention.key.",
             "~encoder.layer.*.attention.attention.value."}},
           {Module::projection, {"~encoder.layer.*.attention.output.dense."}},
           {Module::scale1, {"~encoder.layer.*.lambda_1"}},
           {Module::norm2, {"~encoder.layer.*.layernorm_after."}},
           {Module::fc1, {"~encoder.layer.*.intermediate.dense."}},
           {Module::fc2, {"~encoder.layer.*.output.dense."}},
           {Module::scale2, {"~encoder.layer.*.lambda_2"}},
           {Module::norm, {"~layernorm."}},
           {Module::fc_norm, {"~pooler.layernorm."}},
           {Module::head, {"classifier."}}},
      .unused = {"embeddings.mask_token",
                 "encoder.layer.*.attention.attention.relative_position_bias.relative_position_index",
                 "encoder.relative_position_bias.relative_position_index"},
      .position_spans = {PositionSpan::all},
      .eps = 1e-12,
      .adjust = adjust_beit,
  };
  return family;
}

}  // namespace vitrine
