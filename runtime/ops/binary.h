// Functions of two elements at the same place.
#pragma once

#include <string>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_binary;

// a and b have the same shape; each is f32 or f16. The result is f32 when either is.
ValueId add(Graph& graph, std::string name, ValueId a, ValueId b);
ValueId multiply(Graph& graph, std::string name, ValueId a, ValueId b);

}  // namespace vitrine
