// Parameters of attention_lanes.comp.
#ifndef VITRINE_ATTENTION_LANES_H
#define VITRINE_ATTENTION_LANES_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

struct AttentionLanesParams {
  uint queries;   // tokens that ask, of one image
  uint heads;
  uint q_offset;  // where head 0 begins in a row
  uint k_offset;
  uint v_offset;
  float scale;
};
VITRINE_SHARED_SIZE(AttentionLanesParams, 24);

VITRINE_SHARED_END
#endif
