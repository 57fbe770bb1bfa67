// Parameters of activation_gradient.comp.
#ifndef VITRINE_ACTIVATION_GRADIENT_H
#define VITRINE_ACTIVATION_GRADIENT_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct ActivationGradientParams {
  uint count;
};
VITRINE_SHARED_SIZE(ActivationGradientParams, 4);
VITRINE_SHARED_END

#endif
