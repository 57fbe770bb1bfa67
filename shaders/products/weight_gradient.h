// Parameters of weight_gradient*.comp. What it divides by are specialization constants.
#ifndef VITRINE_WEIGHT_GRADIENT_H
#define VITRINE_WEIGHT_GRADIENT_H

#include "lib/known.h"
#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct WeightGradientParams {
  uint rows;
  uint groups;
};
VITRINE_SHARED_SIZE(WeightGradientParams, 8);
struct WeightGradientLanesParams {
  uint rows;
  uint rows_each;  // of a workgroup but the last, which has the rest
  uint first_part;  // of all rows: the first workgroup's in y
  VITRINE_KNOWN_DIGITS;
};
VITRINE_SHARED_SIZE(WeightGradientLanesParams, 76);
struct WeightGradientSumsParams {
  uint parts;
  uint weights;  // elements of dw
  uint biases;   // of db
};
VITRINE_SHARED_SIZE(WeightGradientSumsParams, 12);
VITRINE_SHARED_END

#endif
