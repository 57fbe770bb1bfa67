// Parameters of heat.comp.
#ifndef VITRINE_STORED_HEAT_H
#define VITRINE_STORED_HEAT_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

struct HeatParams {
  uint maps;    // stored ones; the result has one more with the mean
  uint rows;    // of each
  uint tokens;  // of a row
  uint first_token;
};
VITRINE_SHARED_SIZE(HeatParams, 16);

VITRINE_SHARED_END
#endif
