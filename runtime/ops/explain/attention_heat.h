// What one token looks at, in every head of an attention, as pixels over the picture: from q, k and the
// log-sum-exp that attention kept, in one dispatch.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/explain/heat.h"

namespace vitrine {

extern const OpDef op_attention_heat;
std::vector<reference::OpCase> attention_heat_cases();

// q, k, lse and `attended` as attention_rows() takes them, of one image. choice [1] u32 says whose row;
// colors and result as heat() has them, [heads + 1, ..]: the heads' maps, then their mean. The grid counts
// keys.
HeatResult attention_heat(Graph& graph, std::string name, ValueId q, ValueId k, ValueId lse, ValueId choice,
                          ValueId colors, const AttentionOptions& attended, const HeatGrid& grid);

}  // namespace vitrine
