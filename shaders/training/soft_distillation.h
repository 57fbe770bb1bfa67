// Parameters of soft_distillation.comp.
#ifndef VITRINE_SOFT_DISTILLATION_H
#define VITRINE_SOFT_DISTILLATION_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct SoftDistillationParams {
  uint rows;
  uint classes;
  float inverse_temperature;
  float factor;  // of the divergence, or of its gradient
};
VITRINE_SHARED_SIZE(SoftDistillationParams, 16);
VITRINE_SHARED_END

#endif
