// Rows into columns.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_transpose;
std::vector<reference::OpCase> transpose_cases();

// x [.., R, C], f32 or f16, gives [.., C, R].
ValueId transpose(Graph& graph, std::string name, ValueId x);
// x [.., C] as one matrix of all its rows gives [C, rows].
ValueId transpose_rows(Graph& graph, std::string name, ValueId x);

}  // namespace vitrine
