// Parameters of pool.comp and pool_gradient.comp.
#ifndef VITRINE_POOL_H
#define VITRINE_POOL_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct PoolParams {
  uint count;  // elements of the result
  uint tokens;  // an image
  uint first;  // the first token that is pooled
  uint pooled;  // how many are
};
VITRINE_SHARED_SIZE(PoolParams, 16);
VITRINE_SHARED_END

#endif
