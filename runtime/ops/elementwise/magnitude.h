// How large the numbers of a tensor are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_magnitude;
std::vector<reference::OpCase> magnitude_cases();

// The largest |x| of an f32 or f16 tensor, as [1] f32: NaN if there is one, else infinity if there is one.
ValueId magnitude(Graph& graph, std::string name, ValueId x);

// The same inside another kernel, of one of its operands: appends the dispatches to it.
void append_magnitude(const LowerContext& context, Lowered& lowered, DType dtype, Operand from,
                      uint64_t count, Operand to);

}  // namespace vitrine
