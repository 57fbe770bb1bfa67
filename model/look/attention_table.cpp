#include "model/look/attention_table.h"

namespace vitrine {

std::vector<AttentionRow> attention_table(const ViTConfig& c, const AttentionTableSizes& sizes) {
  const auto number = [](uint64_t value) { return std::to_string(value); };
  const std::string m = number(sizes.images), n = sizes.tokens ? number(*sizes.tokens) : "N";
  const std::string h = number(c.softmaxes());
  const bool talking = c.attention == AttentionKind::talking_heads;
  const bool differential = c.attention == AttentionKind::differential;
  const std::string dk = number(c.head_key_width()), dv = number(c.head_value_width());
  const std::string maps = c.per_head_maps ? "slice h of X * W_" : "X * W_";
  std::string turned = c.head_norm ? ", normalised" : "";
  if (c.rotary != Rotary::none) turned += ", turned by the patch's place";
  const std::string bias = c.relative_bias == RelativeBias::none ? "" : " + relative bias";
  std::vector<AttentionRow> rows{
      {"X", {m, n, number(c.dim)}, "the tokens that the attention is given"},
      {"Q", {m, h, n, dk}, maps + "q, split into heads" + turned},
      {"K", {m, h, n, dk}, maps + "k, split into heads" + turned},
      {"V", {m, number(c.heads), n, dv}, maps + "v, split into heads"},
      {"scores",
       {m, h, n, n},
       "Q * K^T * " + std::to_string(c.attention_scale()) + bias + (talking ? ", all heads' mixed" : "")},
      {"weights",
       {m, h, n, n},
       talking ? "all heads' softmaxes of each row, mixed" : "softmax of each row of the scores"},
      {"heads",
       {m, number(c.heads), n, dv},
       differential ? "(weights of a head's first softmax - share * those of its second) * V, normalised"
                    : "weights * V"},
      {"concat", {m, n, number(c.value_columns())}, "the heads side by side"},
  };
  const std::string given = c.attention_norm ? "norm(concat)" : "concat";
  if (c.projection) rows.push_back({"output", {m, n, number(c.dim)}, given + " * W_o"});
  return rows;
}

}  // namespace vitrine
