// Zeros around a tensor: what slice() leaves out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_pad;
std::vector<reference::OpCase> pad_cases();

// x with `axis` made `size` long: x begins at `begin` of it, and all else is zero. Any dtype, bits unchanged;
// a negative axis counts from the end.
ValueId pad(Graph& graph, std::string name, ValueId x, int axis, uint64_t begin, uint64_t size);

}  // namespace vitrine
