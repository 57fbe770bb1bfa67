// Functions of one element: the activations, and multiplication by a number.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/activation.h"
#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_unary;
std::vector<reference::OpCase> unary_cases();

// x of any shape, f32 or f16; the result has the same dtype. Activation::none gives x itself.
ValueId activate(Graph& graph, std::string name, ValueId x, Activation activation);
ValueId scale(Graph& graph, std::string name, ValueId x, double factor);

}  // namespace vitrine
