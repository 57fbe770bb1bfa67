// Parameters of clip_scale.comp.
#ifndef VITRINE_CLIP_SCALE_H
#define VITRINE_CLIP_SCALE_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct ClipScaleParams {
  uint count;      // numbers to sum
  uint groups;     // each leaves one sum
  float max_norm;  // 0: the norm is only measured
};
VITRINE_SHARED_SIZE(ClipScaleParams, 12);
VITRINE_SHARED_END

#endif
