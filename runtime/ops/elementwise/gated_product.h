// A gated linear unit's product (SwiGLU and its kin): the activated first half of a row times the second.
#pragma once

#include <string>

#include "runtime/graph/op.h"
#include "runtime/ops/elementwise/activation.h"

namespace vitrine {

extern const OpDef op_gated_product;

// x [.., 2K] f32 or f16. Gives act(x[.., :K]) * x[.., K:] as [.., K] in the same dtype.
ValueId gated_product(Graph& graph, std::string name, ValueId x, Activation activation);

}  // namespace vitrine
