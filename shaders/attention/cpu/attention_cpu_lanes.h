// Parameters of attention_cpu_lanes.comp and attention_cpu_lanes_rows.comp.
#ifndef VITRINE_ATTENTION_LANES_H
#define VITRINE_ATTENTION_LANES_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

struct AttentionLanesParams {
  uint queries;  // tokens that ask, of one image
  uint keys;     // tokens that are asked
  uint heads;
  uint q_offset;  // where head 0 begins in a row
  uint k_offset;
  uint v_offset;
  float scale;
  uint drop_stream;  // where weights are dropped: see lib/philox.glsl
  uint drop_threshold;
  float drop_factor;
};
VITRINE_SHARED_SIZE(AttentionLanesParams, 40);

struct AttentionLanesRowsParams {
  uint rows;
  uint stride;  // elements between rows
  uint offset;  // where in a row they begin
};
VITRINE_SHARED_SIZE(AttentionLanesRowsParams, 12);

VITRINE_SHARED_END
#endif
