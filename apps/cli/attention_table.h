// How vitrine inspect shows model/look/attention_table.h.
#pragma once

#include <nlohmann/json.hpp>

#include "model/look/attention_table.h"

namespace vitrine::cli {

void print_attention_table(const ViTConfig& config, const AttentionTableSizes& sizes);
nlohmann::ordered_json json_of_attention(const ViTConfig& config, const AttentionTableSizes& sizes);

}  // namespace vitrine::cli
