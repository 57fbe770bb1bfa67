// A gated linear unit's product (SwiGLU and its kin): the activated first half of a row times the second.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/activation.h"
#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_gated_product;
std::vector<reference::OpCase> gated_product_cases();

// x [.., 2K] f32 or f16. Gives act(x[.., :K]) * x[.., K:] as [.., K] in the same dtype.
ValueId gated_product(Graph& graph, std::string name, ValueId x, Activation activation);

}  // namespace vitrine
