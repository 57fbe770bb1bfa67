// Parameters of the shaders matmul_*.comp.
#ifndef VITRINE_MATMUL_H
#define VITRINE_MATMUL_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

// C[m,n] = epilogue(A[m,k] W[n,k]^T)
struct MatmulParams {
  uint m;
  uint n;
  uint k;
  uint tiles_m;  // tiles that cover the rows
  uint tiles;    // tiles in all
};
VITRINE_SHARED_SIZE(MatmulParams, 20);

VITRINE_SHARED_END
#endif
