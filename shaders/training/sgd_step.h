// Parameters of sgd_step.comp and sgd_step_cpu_quads.comp.
#ifndef VITRINE_SGD_STEP_H
#define VITRINE_SGD_STEP_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct SgdStepParams {
  uint count;
  uint decayed;  // the elements before this one decay
  float weight_decay;
  float momentum;
  float rate_factor;  // of the step's learning rate
};
VITRINE_SHARED_SIZE(SgdStepParams, 20);
VITRINE_SHARED_END

#endif
