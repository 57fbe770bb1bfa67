// Stochastic gradient descent: one step of all parameters at once.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"
#include "runtime/ops/training/flat_update.h"

namespace vitrine {

extern const OpDef op_sgd_step;
std::vector<reference::OpCase> sgd_step_cases();

struct SgdOptions {
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
  uint64_t decay_elements = all_elements;  // the weight decay is that of the elements before this one
  double rate_factor = 1;                  // of the step's learning rate
  // f32; its first element multiplies the gradients. Where that is NaN, nothing changes: see clip_scale().
  ValueId gradient_scale{};
};

struct SgdState {
  ValueId param, velocity;
};

// As torch.optim.SGD: g' = g + weight_decay * param, velocity' = momentum * velocity + g', and
// param' = param - rate * velocity', or, where nesterov, param - rate * (g' + momentum * velocity').
// param, gradient and velocity are f32 of one shape; a velocity of zeros is the one to begin with, and
// without momentum it is none. step: u32 [VITRINE_STEP_WORDS], which holds the rate. The new values may be
// stored where the old ones are.
SgdState sgd_step(Graph& graph, std::string name, ValueId param, ValueId gradient, ValueId velocity,
                  ValueId step, const SgdOptions& options = {});

}  // namespace vitrine
