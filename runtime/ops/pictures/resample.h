// Pillow's resize in integers, two passes with 8-bit rounding between them. What
// depends on a picture's size is data: a table that the host writes (resample_table.h). One graph serves
// all pictures up to its capacities.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_resample_rows;
extern const OpDef op_resample_columns;
std::vector<reference::OpCase> resample_rows_cases();
std::vector<reference::OpCase> resample_columns_cases();

struct ResampleOptions {
  uint64_t blocks = 0;  // how many blocks of rows the table has room for
  uint64_t width = 0;   // of the result
};

// The horizontal pass. pixels [P] u32, one a pixel with red in the lowest byte, all pictures one after the
// other; table [T] u32. Gives [blocks, 64, width] u32, of which only what the table's blocks name is
// written.
ValueId resample_rows(Graph& graph, std::string name, ValueId pixels, ValueId table,
                      const ResampleOptions& options);

// The vertical pass over the other's result, with the same table. Gives [pictures, height, width] u32.
ValueId resample_columns(Graph& graph, std::string name, ValueId x, ValueId table, uint64_t pictures,
                         uint64_t height);

}  // namespace vitrine
