// One tensor for every image of a batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_repeat;
std::vector<reference::OpCase> repeat_cases();

// x [..] gives [count, ..], `count` copies of x. Any dtype, bits unchanged.
ValueId repeat(Graph& graph, std::string name, ValueId x, uint64_t count);
// Tokens for every image: x [R, D] gives [count, R, D], and one token [D] gives [count, 1, D].
ValueId repeat_tokens(Graph& graph, std::string name, ValueId x, uint64_t count);

}  // namespace vitrine
