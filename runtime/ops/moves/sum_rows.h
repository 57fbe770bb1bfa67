// Sums over the leading dimensions: what is repeated over rows in the forward pass, has its gradient summed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_sum_rows;
std::vector<reference::OpCase> sum_rows_cases();

// x of any shape, f32 or f16: the sum over all dimensions but the last `kept`, as f32 of their shape. The
// order of the sums is fixed, and they go by blocks: the error stays that of a few hundred terms.
ValueId sum_rows(Graph& graph, std::string name, ValueId x, size_t kept = 1);
// The same of a * b, element by element, which have the same shape and dtype.
ValueId sum_products(Graph& graph, std::string name, ValueId a, ValueId b, size_t kept = 1);

// How many partial sums such operators leave to a second dispatch; 1 where they need none.
uint64_t partial_rows(uint64_t rows);

}  // namespace vitrine
