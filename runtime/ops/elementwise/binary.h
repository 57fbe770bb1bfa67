// Functions of two elements at the same place.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_binary;
std::vector<reference::OpCase> binary_cases();

// b has the shape of a or the last dimensions of it: a row [N] is added to every row of an a [.., N]. Each is
// f32 or f16, and the result is f32 when either is.
ValueId add(Graph& graph, std::string name, ValueId a, ValueId b);
// a + share * (b - a), element by element.
ValueId mix(Graph& graph, std::string name, ValueId a, ValueId b, double share);
ValueId multiply(Graph& graph, std::string name, ValueId a, ValueId b);

}  // namespace vitrine
