// Parameters of softmax.comp.
#ifndef VITRINE_SOFTMAX_H
#define VITRINE_SOFTMAX_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct SoftmaxParams {
  uint rows;
  uint width;
};
VITRINE_SHARED_SIZE(SoftmaxParams, 8);
VITRINE_SHARED_END

#endif
