// Parameters of matmul_direct.comp, matmul_direct_rows.comp and matmul_direct_panels.comp.
#ifndef VITRINE_MATMUL_DIRECT_H
#define VITRINE_MATMUL_DIRECT_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

struct MatmulDirectParams {
  uint rows;     // of A and C
  uint columns;  // of C: rows of W
  uint steps;    // of K
};
VITRINE_SHARED_SIZE(MatmulDirectParams, 12);

struct MatmulDirectPackParams {
  uint rows;   // of the matrix that is packed
  uint depth;  // its columns: K
  uint steps;  // of K, the last one padded with zeros
  uint count;  // elements of the packed copy
};
VITRINE_SHARED_SIZE(MatmulDirectPackParams, 16);

VITRINE_SHARED_END
#endif
