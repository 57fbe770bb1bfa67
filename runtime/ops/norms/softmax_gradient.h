// The derivative of softmax.
#pragma once

#include <string>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_softmax_gradient;

// y [.., width] is what softmax gave and dy its gradient, both f32 or both f16: gives that of softmax's
// input, y * (dy - sum of dy * y over the row), in the same shape and dtype.
ValueId softmax_gradient(Graph& graph, std::string name, ValueId dy, ValueId y);

}  // namespace vitrine
