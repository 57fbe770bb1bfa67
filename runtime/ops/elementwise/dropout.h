// Dropout, and stochastic depth: zeros at random.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_dropout;
std::vector<reference::OpCase> dropout_cases();

struct DropoutOptions {
  double rate = 0;      // of what is dropped: from 0 to less than 1
  uint32_t stream = 0;  // nodes of one graph draw from streams of their own
  uint64_t group = 1;   // consecutive elements that share a draw: all of a sample's, say
};

// x of any shape, f32 or f16, and the step [VITRINE_STEP_WORDS] u32 (shaders/lib/step_state.h) with seed and
// number. Gives x / (1 - rate), or 0 where the draw of an element's group says so
// (runtime/ops/elementwise/random_mask.h); a rate of 0 gives x itself.
ValueId dropout(Graph& graph, std::string name, ValueId x, ValueId step, const DropoutOptions& options);

// What every operator that draws checks when it infers: that an input is a step, and the attribute `rate`.
void require_step(const InferContext& context, size_t input);
void require_drop_rate(const InferContext& context);

}  // namespace vitrine
