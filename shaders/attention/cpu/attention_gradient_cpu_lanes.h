// Parameters of attention_gradient_lanes_*.comp and attention_gradient_cpu_whole.comp.
#ifndef VITRINE_ATTENTION_GRADIENT_LANES_H
#define VITRINE_ATTENTION_GRADIENT_LANES_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

// Offsets are where head 0 begins in a row, of a tensor and of its gradient alike.
struct AttentionGradientLanesParams {
  uint queries;  // of one image
  uint keys;
  uint heads;
  uint q_offset;
  uint k_offset;
  uint v_offset;
  float scale;
  uint drop_stream;  // where weights are dropped: see lib/philox.glsl
  uint drop_threshold;
  float drop_factor;
};
VITRINE_SHARED_SIZE(AttentionGradientLanesParams, 40);

VITRINE_SHARED_END
#endif
