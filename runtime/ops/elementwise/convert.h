// Conversion between f32, f16 and bf16, rounding to nearest even.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_convert;
std::vector<reference::OpCase> convert_cases();

// Works on bit patterns, so that subnormal numbers survive on devices that flush them and the rounding
// is the same on all. A NaN stays a (quiet) NaN; a number too large for the target becomes an infinity.
// Converting to the value's own dtype gives the value itself.
ValueId convert(Graph& graph, std::string name, ValueId x, DType to);

}  // namespace vitrine
