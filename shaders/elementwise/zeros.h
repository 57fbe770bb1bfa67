// Parameters of zeros.comp.
#ifndef VITRINE_ZEROS_H
#define VITRINE_ZEROS_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct ZerosParams {
  uint count;
};
VITRINE_SHARED_SIZE(ZerosParams, 4);
VITRINE_SHARED_END
#endif
