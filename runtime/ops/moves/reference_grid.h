// Of tokens that are a grid of patches, what the operators on such grids should compute.
#pragma once

#include "runtime/check/reference.h"
#include "runtime/ops/attention/grid_bias.h"
#include "runtime/ops/moves/token_windows.h"

namespace vitrine::reference {

Values grid_bias(const Values& q, const Shape& shape, const Values& rows, const Values& columns,
                 const GridBiasOptions& options);
// [batch, height * width, columns] as windows, and windows as that.
Values partition_windows(const Values& x, uint64_t batch, uint64_t columns, const TokenGrid& grid);
Values merge_windows(const Values& x, uint64_t batch, uint64_t columns, const TokenGrid& grid);

}  // namespace vitrine::reference
