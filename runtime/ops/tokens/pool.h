// Pools a token sequence into one vector an image.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_pool;
extern const OpDef op_pool_gradient;
std::vector<reference::OpCase> pool_cases();
std::vector<reference::OpCase> pool_gradient_cases();

// tokens [B, N, D] f32 or f16; the result is [B, D] in the same dtype.
ValueId pool_token(Graph& graph, std::string name, ValueId tokens, uint64_t index);
// The mean of `count` tokens from `first` on, summed in f32 in a fixed order.
ValueId pool_mean(Graph& graph, std::string name, ValueId tokens, uint64_t first, uint64_t count);

// The gradient of the tokens, [B, tokens, D] f32, where `gradient` [B, D] f32 is that of the mean of `count`
// of them from `first` on.
ValueId pool_gradient(Graph& graph, std::string name, ValueId gradient, uint64_t tokens, uint64_t first,
                      uint64_t count);

}  // namespace vitrine
