// Parameters of argmax.comp.
#ifndef VITRINE_ARGMAX_H
#define VITRINE_ARGMAX_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct ArgmaxParams {
  uint rows;
  uint width;
};
VITRINE_SHARED_SIZE(ArgmaxParams, 8);
VITRINE_SHARED_END

#endif
