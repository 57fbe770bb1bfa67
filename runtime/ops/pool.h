// Pools a token sequence into one vector an image.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_pool;

// tokens [B, N, D] f32 or f16; the result is [B, D] in the same dtype.
ValueId pool_token(Graph& graph, std::string name, ValueId tokens, uint64_t index);
// The mean of `count` tokens from `first` on, summed in f32 in a fixed order.
ValueId pool_mean(Graph& graph, std::string name, ValueId tokens, uint64_t first, uint64_t count);

}  // namespace vitrine
