// The walk through multi-head self-attention as a table of shapes, in the letters of the paper.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/vit/vit_config.h"

namespace vitrine {

// M images of N tokens of width D, heads with D_k columns of queries and keys and D_v of values.
struct AttentionTableSizes {
  uint64_t images = 1;
  std::optional<uint64_t> tokens;  // nothing: any number of them
};

struct AttentionRow {
  std::string name;                // "Q", "scores", "concat"
  std::vector<std::string> shape;  // numbers, or N
  std::string from;                // what it is made of
};
std::vector<AttentionRow> attention_table(const ViTConfig& config, const AttentionTableSizes& sizes);

}  // namespace vitrine
