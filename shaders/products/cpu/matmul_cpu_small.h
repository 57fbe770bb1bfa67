// Parameters of matmul_cpu_small.comp.
#ifndef VITRINE_MATMUL_SMALL_H
#define VITRINE_MATMUL_SMALL_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct MatmulSmallParams {
  uint rows;  // of A and C
};
VITRINE_SHARED_SIZE(MatmulSmallParams, 4);
VITRINE_SHARED_END
#endif
