#include "apps/cli/attention_table.h"

#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

namespace vitrine::cli {
void print_attention_table(const ViTConfig& c, const AttentionTableSizes& sizes) {
  std::printf("\nattention: M=%" PRIu64 " N=%s D=%" PRIu64 " D_k=%" PRIu64 " D_v=%" PRIu64 " heads=%" PRIu64
              "%s\n",
              sizes.images, sizes.tokens ? std::to_string(*sizes.tokens).c_str() : "any", c.dim,
              c.head_key_width(), c.head_value_width(), c.heads, c.projection ? "" : ", without W_o");
  for (const AttentionRow& row : attention_table(c, sizes)) {
    std::string shape;
    for (const std::string& dim : row.shape) shape += (shape.empty() ? "[" : ", ") + dim;
    std::printf("  %-8s %-22s %s\n", row.name.c_str(), (shape + "]").c_str(), row.from.c_str());
  }
}

nlohmann::ordered_json json_of_attention(const ViTConfig& c, const AttentionTableSizes& sizes) {
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
