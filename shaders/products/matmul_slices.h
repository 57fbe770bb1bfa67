// Parameters of matmul_slices.comp.
#ifndef VITRINE_MATMUL_SLICES_H
#define VITRINE_MATMUL_SLICES_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

struct MatmulSlicesParams {
  uint count;  // elements of C
};
VITRINE_SHARED_SIZE(MatmulSlicesParams, 4);

VITRINE_SHARED_END
#endif
