// Parameters of binary_cross_entropy.comp.
#ifndef VITRINE_BINARY_CROSS_ENTROPY_H
#define VITRINE_BINARY_CROSS_ENTROPY_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct BinaryCrossEntropyParams {
  uint rows;
  uint classes;
  float smoothing;  // this part of the target is spread over all classes
  float threshold;  // where targets are 0 or 1: those above it become 1
  float factor;     // of the sum over classes
};
VITRINE_SHARED_SIZE(BinaryCrossEntropyParams, 20);
VITRINE_SHARED_END

#endif
