// Joins tensors along one axis.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_concat;
std::vector<reference::OpCase> concat_cases();

// The parts have one dtype (any, bits unchanged) and equal sizes on every axis but `axis`, which counts
// from the end when negative.
ValueId concat(Graph& graph, std::string name, std::vector<ValueId> parts, int axis);

}  // namespace vitrine
