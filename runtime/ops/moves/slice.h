// A range of one axis.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_slice;
std::vector<reference::OpCase> slice_cases();

// x[.., begin:end, ..] along `axis`, which counts from the end when negative. Any dtype, bits unchanged.
ValueId slice(Graph& graph, std::string name, ValueId x, int axis, uint64_t begin, uint64_t end);

}  // namespace vitrine
