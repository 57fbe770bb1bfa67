// Parameters of count_update.comp.
#ifndef VITRINE_COUNT_UPDATE_H
#define VITRINE_COUNT_UPDATE_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct CountUpdateParams {
  uint words;  // of a step
};
VITRINE_SHARED_SIZE(CountUpdateParams, 4);
VITRINE_SHARED_END

#endif
