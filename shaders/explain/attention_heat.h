// Parameters of attention_heat.comp. Strides and offsets count elements.
#ifndef VITRINE_ATTENTION_HEAT_H
#define VITRINE_ATTENTION_HEAT_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

// As in attention_rows.h, of one image; patches are the keys from first_key on.
struct AttentionHeatParams {
  uint queries;
  uint heads;
  uint q_stride;
  uint k_stride;
  uint q_offset;
  uint k_offset;
  float scale;
  uint first_key;
};
VITRINE_SHARED_SIZE(AttentionHeatParams, 32);

VITRINE_SHARED_END
#endif
