// Parameters of adam_step.comp and adam_step_cpu_quads.comp.
#ifndef VITRINE_ADAM_STEP_H
#define VITRINE_ADAM_STEP_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct AdamStepParams {
  uint count;
  uint decayed;  // the elements before this one decay
  float weight_decay;
  float beta1;
  float rest1;  // 1 - beta1, which in f32 would lose its last digits
  float beta2;
  float rest2;  // 1 - beta2
  float eps;
  float rate_factor;  // of the step's learning rate
};
VITRINE_SHARED_SIZE(AdamStepParams, 36);
VITRINE_SHARED_END

#endif
