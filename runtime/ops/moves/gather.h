// Picks rows by number.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_gather;
std::vector<reference::OpCase> gather_cases();

// x [.., N, D] of any dtype, bits unchanged; rows [R] u32. Gives [.., R, D]. A row number of N or more
// gives a row of set bits, which is NaN in every float type: never another row's data.
ValueId gather(Graph& graph, std::string name, ValueId x, ValueId rows);

}  // namespace vitrine
