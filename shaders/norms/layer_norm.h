// Parameters of layer_norm.comp.
#ifndef VITRINE_LAYER_NORM_H
#define VITRINE_LAYER_NORM_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct LayerNormParams {
  uint rows;
  uint width;
  float eps;
};
VITRINE_SHARED_SIZE(LayerNormParams, 12);
VITRINE_SHARED_END

#endif
