// A grid of tokens cut into square windows, each a sequence of its own, and put together again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_token_windows;
std::vector<reference::OpCase> token_windows_cases();

struct TokenGrid {
  uint64_t height = 1, width = 1, window = 1;

  uint64_t window_rows() const { return (height + window - 1) / window; }
  uint64_t window_columns() const { return (width + window - 1) / window; }
  uint64_t windows() const { return window_rows() * window_columns(); }
};

// x [B, height * width, C] f32 or f16, row by row, gives [B * windows, window * window, C]: an image's
// windows row by row, and their tokens. Zeros are where the last windows reach beyond the grid.
ValueId partition_windows(Graph& graph, std::string name, ValueId x, const TokenGrid& grid);
// The reverse: [B * windows, window * window, C] gives [B, height * width, C].
ValueId merge_windows(Graph& graph, std::string name, ValueId x, const TokenGrid& grid);

}  // namespace vitrine
