// Parameters of binary.comp and the numbers of its functions.
#ifndef VITRINE_BINARY_H
#define VITRINE_BINARY_H

#include "lib/shared.h"

#define VITRINE_BINARY_ADD 0
#define VITRINE_BINARY_MULTIPLY 1
#define VITRINE_BINARY_MIX 2

VITRINE_SHARED_BEGIN
struct BinaryParams {
  uint count;
  float share;  // of MIX
};
VITRINE_SHARED_SIZE(BinaryParams, 8);
VITRINE_SHARED_END

#endif
