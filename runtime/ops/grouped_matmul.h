// A linear layer for each group (head) of a row, on the row's slice that belongs to it.
#pragma once

#include <string>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_grouped_matmul;

// x [.., G*K] and weight [G, N, K], both f32 or both f16, and bias [G, N] in f32 or none, give [.., G*N] in
// x's dtype: slice g of a row, times weight[g] transposed, plus bias[g].
ValueId grouped_matmul(Graph& graph, std::string name, ValueId x, ValueId weight, ValueId bias = {});
// x [.., G*N] and weight [G, N, K] give [.., G*K]: slice g of a row, times weight[g].
ValueId grouped_matmul_turned(Graph& graph, std::string name, ValueId x, ValueId weight);

}  // namespace vitrine
