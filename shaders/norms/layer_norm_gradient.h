// Parameters of the shaders layer_norm_gradient*.comp.
#ifndef VITRINE_LAYER_NORM_GRADIENT_H
#define VITRINE_LAYER_NORM_GRADIENT_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN

struct LayerNormGradientSumsParams {
  uint count;   // elements of X
  uint stride;  // of the result: how far apart are elements that are summed
};
VITRINE_SHARED_SIZE(LayerNormGradientSumsParams, 8);

VITRINE_SHARED_END
#endif
