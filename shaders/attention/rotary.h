// Parameters of rotary.comp.
#ifndef VITRINE_ROTARY_H
#define VITRINE_ROTARY_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct RotaryParams {
  uint rows;      // of all samples
  uint x_stride;  // elements of a row of x
  float sign;     // of the angles: 1, or -1 for the way back
};
VITRINE_SHARED_SIZE(RotaryParams, 12);
VITRINE_SHARED_END

#endif
