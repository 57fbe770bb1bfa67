// Parameters of binary.comp and the numbers of its functions.
#ifndef VITRINE_BINARY_H
#define VITRINE_BINARY_H

#include "lib/shared.h"

#define VITRINE_BINARY_ADD 0
#define VITRINE_BINARY_MULTIPLY 1

VITRINE_SHARED_BEGIN
struct BinaryParams {
  uint count;
};
VITRINE_SHARED_SIZE(BinaryParams, 4);
VITRINE_SHARED_END

#endif
