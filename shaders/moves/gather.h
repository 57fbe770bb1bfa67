// Parameters of gather.comp.
#ifndef VITRINE_GATHER_H
#define VITRINE_GATHER_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct GatherParams {
  uint rows;  // of the result, in all
  uint picked;  // rows of the result an outer index
  uint source_rows;  // rows of the source an outer index
  uint width;
};
VITRINE_SHARED_SIZE(GatherParams, 16);
VITRINE_SHARED_END

#endif
