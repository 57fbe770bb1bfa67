// Parameters of the kernels of group_norm.
#ifndef VITRINE_GROUP_NORM_H
#define VITRINE_GROUP_NORM_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct GroupNormParams {
  uint count;   // pieces of work
  uint pixels;  // of an image
  uint slabs;   // that these are cut into
  float eps;
};
VITRINE_SHARED_SIZE(GroupNormParams, 16);
VITRINE_SHARED_END

#endif
