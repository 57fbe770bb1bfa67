// The derivative of an activation function.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/activation.h"
#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_activation_gradient;
std::vector<reference::OpCase> activation_gradient_cases();

// dy * act'(x), element by element: the gradient of x where dy is that of act(x). Both have the same shape
// and dtype, f32 or f16, and so has the result. Activation::none gives dy itself.
ValueId activation_gradient(Graph& graph, std::string name, ValueId dy, ValueId x, Activation activation);

}  // namespace vitrine
