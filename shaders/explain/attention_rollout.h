// Parameters of attention_rollout_sums.comp and attention_rollout.comp.
#ifndef VITRINE_ATTENTION_ROLLOUT_H
#define VITRINE_ATTENTION_ROLLOUT_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

struct AttentionRolloutParams {
  uint count;  // rows of all maps
  uint tokens;
  uint rows;       // of the result, of one image
  uint first_row;  // which rows of the identity the product starts with
  uint mean_of;    // 0, or the result is one row that starts with the mean of so many rows
};
VITRINE_SHARED_SIZE(AttentionRolloutParams, 20);

VITRINE_SHARED_END
#endif
