// Where a row is largest.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_argmax;
std::vector<reference::OpCase> argmax_cases();

// x [rows, N] f32. Gives [rows] u32: the place of each row's largest element, of equals the first. As in
// PyTorch, a NaN is larger than every number. It has no derivative.
ValueId argmax(Graph& graph, std::string name, ValueId x);

}  // namespace vitrine
