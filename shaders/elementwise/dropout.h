// Parameters of dropout.comp.
#ifndef VITRINE_DROPOUT_H
#define VITRINE_DROPOUT_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct DropoutParams {
  uint count;  // elements
  uint stream;
  uint threshold;
  float factor;  // of what is kept
};
VITRINE_SHARED_SIZE(DropoutParams, 16);
VITRINE_SHARED_END
#endif
