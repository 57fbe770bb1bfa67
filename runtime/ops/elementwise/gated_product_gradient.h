// The derivative of gated_product.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/activation.h"
#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_gated_product_gradient;
std::vector<reference::OpCase> gated_product_gradient_cases();

// x [.., 2K] is what gated_product was given and dy [.., K] the gradient of what it gave, both f32 or both
// f16: gives that of x.
ValueId gated_product_gradient(Graph& graph, std::string name, ValueId dy, ValueId x, Activation activation);

}  // namespace vitrine
