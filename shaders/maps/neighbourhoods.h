// Parameters of neighbourhoods.comp and neighbourhoods_quads.comp. What they divide by are specialization
// constants.
#ifndef VITRINE_NEIGHBOURHOODS_H
#define VITRINE_NEIGHBOURHOODS_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct NeighbourhoodsParams {
  uint count;          // pieces of work
  uint height, width;  // of a map that is read
  uint top, left;      // pixels in front of the first one that the first neighbourhood has
};
VITRINE_SHARED_SIZE(NeighbourhoodsParams, 20);
VITRINE_SHARED_END

#endif
