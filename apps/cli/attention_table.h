// The walk through multi-head self-attention as a table of shapes, in the letters of the paper.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "model/vit_config.h"

namespace vitrine::cli {

// M images of N tokens of width D, heads with D_k columns of queries and keys and D_v of values.
struct AttentionSizes {
  uint64_t images = 1;
  std::optional<uint64_t> tokens;  // nothing: any number of them
};

void print_attention_table(const ViTConfig& config, const AttentionSizes& sizes);
nlohmann::ordered_json json_of_attention(const ViTConfig& config, const AttentionSizes& sizes);

}  // namespace vitrine::cli
