// What SAM adds to attention's scores: queries times the relative positions of rows and of columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_grid_bias;
std::vector<reference::OpCase> grid_bias_cases();

// Of the queries as attention() has them, head h of a row at offset + h * key_width.
struct GridBiasOptions {
  uint64_t heads = 1, key_width = 1, q_offset = 0;
  uint64_t height = 1, width = 1;  // of the grid of patches that the tokens are
};

// q [B, height * width, ..] f32 or f16; rows [2 * height - 1, key_width] and columns
// [2 * width - 1, key_width] f32. Gives AttentionOptions::bias_rows, f32 [B, heads, N, height + width]: of a
// query at (y, x) for row k of keys q . rows[y - k + height - 1], and behind these for column k
// q . columns[x - k + width - 1].
ValueId grid_bias(Graph& graph, std::string name, ValueId q, ValueId rows, ValueId columns,
                  const GridBiasOptions& options);

}  // namespace vitrine
