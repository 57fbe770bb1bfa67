// The derivative of softmax.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_softmax_gradient;
std::vector<reference::OpCase> softmax_gradient_cases();

// y [.., width] is what softmax gave and dy its gradient, both f32 or both f16: gives that of softmax's
// input, y * (dy - sum of dy * y over the row), in the same shape and dtype.
ValueId softmax_gradient(Graph& graph, std::string name, ValueId dy, ValueId y);

}  // namespace vitrine
