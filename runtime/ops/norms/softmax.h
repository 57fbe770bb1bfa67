// Softmax over the last dimension.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_softmax;
std::vector<reference::OpCase> softmax_cases();
std::vector<reference::Sample> softmax_sample(const reference::LoneNode& node);

// x [.., width] f32 or f16; the result has the same dtype, the arithmetic is f32.
ValueId softmax(Graph& graph, std::string name, ValueId x);

}  // namespace vitrine
