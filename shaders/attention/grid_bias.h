// Parameters of grid_bias.comp.
#ifndef VITRINE_GRID_BIAS_H
#define VITRINE_GRID_BIAS_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct GridBiasParams {
  uint count;   // elements of the result
  uint stride;  // of a row of q
  uint offset;  // of the first head in it
};
VITRINE_SHARED_SIZE(GridBiasParams, 12);
VITRINE_SHARED_END

#endif
