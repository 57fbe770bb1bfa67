#include "runtime/ops/row_blocks.h"

namespace vitrine {
namespace {

constexpr std::string_view name = "blocks of rows";

}  // namespace

Layout RowBlocks::layout() const {
  return {.name = name,
          .numbers = {rows, depth, block_rows, unroll},
          .bytes = round_up(rows, block_rows) * depth * sizeof(float)};
}

std::optional<RowBlocks> row_blocks_of(const Layout* layout) {
  if (!layout || layout->name != name) return std::nullopt;
  const auto& [rows, depth, block_rows, unroll] = layout->numbers;
  return RowBlocks{.rows = rows, .depth = depth, .block_rows = to_u32(block_rows), .unroll = to_u32(unroll)};
}

}  // namespace vitrine
