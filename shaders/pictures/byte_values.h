// Parameters of byte_values.comp.
#ifndef VITRINE_BYTE_VALUES_H
#define VITRINE_BYTE_VALUES_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct ByteValuesParams {
  uint count;  // numbers
};
VITRINE_SHARED_SIZE(ByteValuesParams, 4);
VITRINE_SHARED_END

#endif
