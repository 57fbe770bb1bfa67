// The same elements under another shape.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_reshape;
std::vector<reference::OpCase> reshape_cases();

// x as `shape`, which has as many elements: a copy. Any dtype, bits unchanged. Gives x itself where it has
// that shape.
ValueId reshape(Graph& graph, std::string name, ValueId x, const Shape& shape);

}  // namespace vitrine
