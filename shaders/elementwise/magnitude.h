// Parameters of magnitude.comp.
#ifndef VITRINE_MAGNITUDE_H
#define VITRINE_MAGNITUDE_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct MagnitudeParams {
  uint count;
  uint groups;
};
VITRINE_SHARED_SIZE(MagnitudeParams, 8);
VITRINE_SHARED_END

#endif
