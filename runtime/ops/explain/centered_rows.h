// A range of rows with the mean of each column taken off.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_centered_rows;
std::vector<reference::OpCase> centered_rows_cases();

struct CenteredRows {
  ValueId rows;   // [count, width], or [width, count] where it was asked for
  ValueId means;  // [width]
};
// x [.., rows, width] f32, of which the last two dimensions are all there is.
CenteredRows centered_rows(Graph& graph, std::string name, ValueId x, uint64_t first, uint64_t count,
                           bool transposed);

}  // namespace vitrine
