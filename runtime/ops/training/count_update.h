// How many updates an optimiser has made, where some are left out.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_count_update;
std::vector<reference::OpCase> count_update_cases();

struct CountedUpdate {
  ValueId step;     // u32 [VITRINE_STEP_WORDS]: what adam_step() is given
  ValueId updates;  // u32 [1]
};

// step: u32 [VITRINE_STEP_WORDS] with a pair of corrections for each number of updates that may have been
// made by now. updates: u32 [1], how many were; it is one more afterwards, unless the first element of
// gradient_scale is NaN, where the optimiser changes nothing. The step is given back with the pair that
// belongs to `updates` where adam_step() looks. The new number may be stored where the old one is.
CountedUpdate count_update(Graph& graph, std::string name, ValueId step, ValueId gradient_scale,
                           ValueId updates);

}  // namespace vitrine
