// Softmax over the last dimension.
#pragma once

#include <string>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_softmax;

// x [.., width] f32 or f16; the result has the same dtype, the arithmetic is f32.
ValueId softmax(Graph& graph, std::string name, ValueId x);

}  // namespace vitrine
