// Parameters of attention_bias_gradient.comp. Strides and offsets count elements.
#ifndef VITRINE_ATTENTION_BIAS_GRADIENT_H
#define VITRINE_ATTENTION_BIAS_GRADIENT_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

// Rows of q, k and v as in attention.h, of as many queries as keys.
struct AttentionBiasGradientParams {
  uint batch;
  uint tokens;
  uint heads;
  uint q_stride;
  uint k_stride;
  uint v_stride;
  uint q_offset;
  uint k_offset;
  uint v_offset;
  float scale;
  uint count;        // rows of the table times heads
  uint drop_stream;  // where weights are dropped: see lib/philox.glsl
  uint drop_threshold;
  float drop_factor;
};
VITRINE_SHARED_SIZE(AttentionBiasGradientParams, 56);

VITRINE_SHARED_END
#endif
