// Adam and AdamW: one step of all parameters at once.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"
#include "runtime/ops/training/flat_update.h"

namespace vitrine {

extern const OpDef op_adam_step;
std::vector<reference::OpCase> adam_step_cases();

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;                  // AdamW: the decay is no part of the gradient
  uint64_t decay_elements = all_elements;  // the weight decay is that of the elements before this one
  double rate_factor = 1;                  // of the step's learning rate
  // f32; its first element multiplies the gradients. Where that is NaN, nothing changes: see clip_scale().
  ValueId gradient_scale{};
};

struct AdamState {
  ValueId param, m, v;
};

// As torch.optim.Adam, and AdamW where decoupled: m' = beta1 m + (1 - beta1) g, v' = beta2 v + (1 - beta2)
// g^2, param' = param - rate * (m' / (1 - beta1^t)) / (sqrt(v' / (1 - beta2^t)) + eps). The weight decay adds
// weight_decay * param to g, or, where decoupled, takes rate * weight_decay * param off the parameters.
// param, gradient, m and v are f32 of one shape; m and v begin as zeros. step: u32 [VITRINE_STEP_WORDS],
// which holds the rate and both corrections. The new values may be stored where the old ones are.
AdamState adam_step(Graph& graph, std::string name, ValueId param, ValueId gradient, ValueId m, ValueId v,
                    ValueId step, const AdamOptions& options = {});

}  // namespace vitrine
