// A linear layer of queries and keys, turned by rotary positions before they are stored: what the rule of
// fusion `rotary` makes of matmul and rotary on GPUs, where a pass of its own costs more than the turning.
#pragma once

#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

// matmul's x, weight and bias, then rotary's table; rotary's attributes.
extern const OpDef op_rotary_matmul;
std::vector<reference::OpCase> rotary_matmul_cases();
std::vector<reference::Sample> rotary_matmul_sample(const reference::LoneNode& node);

namespace rotary_matmul_input {
constexpr uint32_t table = 5;  // behind matmul's, of which scale and residual are none
}

}  // namespace vitrine
