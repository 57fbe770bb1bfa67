#include "apps/cli/attention_table.h"

#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

namespace vitrine::cli {
namespace {

struct Row {
  const char* name;
  std::vector<std::string> dims;
  std::string from;
};

std::string text_of(const std::optional<uint64_t>& tokens) { return tokens ? std::to_string(*tokens) : "N"; }

std::vector<Row> rows_of(const ViTConfig& c, const AttentionSizes& sizes) {
  const auto number = [](uint64_t value) { return std::to_string(value); };
  const std::string m = number(sizes.images), n = text_of(sizes.tokens), h = number(c.heads);
  const std::string dk = number(c.head_key_width()), dv = number(c.head_value_width());
  const std::string maps = c.per_head_maps ? "slice h of X * W_" : "X * W_";
  std::vector<Row> rows{
      {"X", {m, n, number(c.dim)}, "the tokens that the attention is given"},
      {"Q", {m, h, n, dk}, maps + "q, split into heads"},
      {"K", {m, h, n, dk}, maps + "k, split into heads"},
      {"V", {m, h, n, dv}, maps + "v, split into heads"},
      {"scores", {m, h, n, n}, "Q * K^T * " + std::to_string(c.attention_scale())},
      {"weights", {m, h, n, n}, "softmax of each row of the scores"},
      {"heads", {m, h, n, dv}, "weights * V"},
      {"concat", {m, n, number(c.value_columns())}, "the heads side by side"},
  };
  if (c.projection) rows.push_back({"output", {m, n, number(c.dim)}, "concat * W_o"});
  return rows;
}

}  // namespace

void print_attention_table(const ViTConfig& c, const AttentionSizes& sizes) {
  std::printf("\nattention: M=%" PRIu64 " N=%s D=%" PRIu64 " D_k=%" PRIu64 " D_v=%" PRIu64 " heads=%" PRIu64
              "%s\n",
              sizes.images, sizes.tokens ? std::to_string(*sizes.tokens).c_str() : "any", c.dim,
              c.head_key_width(), c.head_value_width(), c.heads, c.projection ? "" : ", without W_o");
  for (const Row& row : rows_of(c, sizes)) {
    std::string shape;
    for (const std::string& dim : row.dims) shape += (shape.empty() ? "[" : ", ") + dim;
    std::printf("  %-8s %-22s %s\n", row.name, (shape + "]").c_str(), row.from.c_str());
  }
}

nlohmann::ordered_json json_of_attention(const ViTConfig& c, const AttentionSizes& sizes) {
  nlohmann::ordered_json json{{"M", sizes.images}};
  json["N"] = sizes.tokens ? nlohmann::ordered_json(*sizes.tokens) : nlohmann::ordered_json();
  json["D"] = c.dim;
  json["D_k"] = c.head_key_width();
  json["D_v"] = c.head_value_width();
  json["heads"] = c.heads;
  json["W_o"] = c.projection;
  return json;
}

}  // namespace vitrine::cli
