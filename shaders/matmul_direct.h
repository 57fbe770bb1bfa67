// Parameters of matmul_direct.comp and matmul_direct_pack.comp.
#ifndef VITRINE_MATMUL_DIRECT_H
#define VITRINE_MATMUL_DIRECT_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

struct MatmulDirectParams {
  uint rows;     // of A and C
  uint columns;  // of C: rows of W
};
VITRINE_SHARED_SIZE(MatmulDirectParams, 8);

struct MatmulDirectPackParams {
  uint columns;  // rows of W
  uint depth;    // columns of W
  uint count;    // elements of the packed copy
};
VITRINE_SHARED_SIZE(MatmulDirectPackParams, 12);

VITRINE_SHARED_END
#endif
