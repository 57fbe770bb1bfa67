// Parameters of unary.comp, and the number of its function beyond those of lib/activation.h.
#ifndef VITRINE_UNARY_H
#define VITRINE_UNARY_H

#include "lib/activation.h"
#include "lib/shared.h"

#define VITRINE_UNARY_SCALE VITRINE_ACTIVATION_COUNT

VITRINE_SHARED_BEGIN
struct UnaryParams {
  uint count;
  float factor;  // for VITRINE_UNARY_SCALE
};
VITRINE_SHARED_SIZE(UnaryParams, 8);
VITRINE_SHARED_END

#endif
