// Parameters of cross_entropy.comp and cross_entropy_cpu_lanes.comp.
#ifndef VITRINE_CROSS_ENTROPY_H
#define VITRINE_CROSS_ENTROPY_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct CrossEntropyParams {
  uint rows;
  uint classes;
  float smoothing;  // this part of the target is spread over all classes, the rest is the label's
};
VITRINE_SHARED_SIZE(CrossEntropyParams, 12);
VITRINE_SHARED_END

#endif
