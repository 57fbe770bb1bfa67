// A linear layer for each group (head) of a row, on the row's slice that belongs to it.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_grouped_matmul;
std::vector<reference::OpCase> grouped_matmul_cases();

// x [.., G*K] and weight [G, N, K], both f32 or both f16, and bias [G, N] in f32 or none, give [.., G*N] in
// x's dtype: slice g of a row, times weight[g] transposed, plus bias[g]. x may have fewer slices, of which G
// is a multiple: the slice of group g is then g modulo their number, so that several sets of groups (queries,
// keys and values) see the same heads.
ValueId grouped_matmul(Graph& graph, std::string name, ValueId x, ValueId weight, ValueId bias = {});
// x [.., G*N] and weight [G, N, K] give [.., G/sets*K]: slice g of a row, times weight[g], summed over the
// sets.
ValueId grouped_matmul_turned(Graph& graph, std::string name, ValueId x, ValueId weight, uint64_t sets = 1);

}  // namespace vitrine
