// The layout in which the products of CPU devices read their left side: blocks of rows, a step of the depth
// of all of them one after the other.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/graph/op.h"

namespace vitrine {

// f32 in [blocks of rows][steps of depth][block_rows][unroll]. What lies in the last block behind the last
// row is read, and no result depends on it.
struct RowBlocks {
  uint64_t rows = 0, depth = 0;  // the depth is a multiple of unroll
  uint32_t block_rows = 1, unroll = 1;
  Layout layout() const;
};

// The blocks of a layout that is one of blocks; nothing for rows (null) and all others.
std::optional<RowBlocks> row_blocks_of(const Layout* layout);

}  // namespace vitrine
