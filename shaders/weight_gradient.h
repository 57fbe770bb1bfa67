// Parameters of weight_gradient.comp. What it divides by are specialization constants.
#ifndef VITRINE_WEIGHT_GRADIENT_H
#define VITRINE_WEIGHT_GRADIENT_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct WeightGradientParams {
  uint rows;
  uint groups;
};
VITRINE_SHARED_SIZE(WeightGradientParams, 8);
VITRINE_SHARED_END

#endif
