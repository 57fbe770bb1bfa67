// Parameters of the shaders attention_*.comp and plain_*.comp. Strides and offsets count elements.
#ifndef VITRINE_ATTENTION_H
#define VITRINE_ATTENTION_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

// For every batch b, head h and query n: the keys' softmax(scale * q . k) mixes their values.
// Row n of q starts at (b * queries + n) * q_stride + q_offset, and head h of it h * key_width further.
struct AttentionParams {
  uint queries;
  uint keys;
  uint heads;
  uint key_width;    // of one head
  uint value_width;  // of one head
  uint q_stride;
  uint k_stride;
  uint v_stride;
  uint q_offset;
  uint k_offset;
  uint v_offset;
  float scale;
  uint blocks;  // pieces of work in all
  uint drop_stream;  // where weights are dropped: see lib/philox.glsl
  uint drop_threshold;
  float drop_factor;
};
VITRINE_SHARED_SIZE(AttentionParams, 64);

VITRINE_SHARED_END
#endif
