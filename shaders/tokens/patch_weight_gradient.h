// Parameters of patch_weight_gradient*.comp.
#ifndef VITRINE_PATCH_WEIGHT_GRADIENT_H
#define VITRINE_PATCH_WEIGHT_GRADIENT_H

#include "lib/known.h"
#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct PatchWeightGradientParams {
  uint rows;   // patches of all images
  uint tiles;  // of the result
};
VITRINE_SHARED_SIZE(PatchWeightGradientParams, 8);
struct PatchWeightGradientLanesParams {
  VITRINE_KNOWN_DIGITS;
};
VITRINE_SHARED_SIZE(PatchWeightGradientLanesParams, 64);
VITRINE_SHARED_END

#endif
