// Parameters of the shaders matmul_*.comp.
#ifndef VITRINE_MATMUL_H
#define VITRINE_MATMUL_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

// C[m,n] = epilogue(A[m,k] W[n,k]^T). With more than one slice C is [slices][m,n], a partial sum each.
struct MatmulParams {
  uint m;
  uint n;
  uint k;
  uint tiles_m;  // tiles that cover the rows
  uint tiles;    // tiles in all
  uint slices;   // pieces of K
  uint slice_k;  // how long a slice is, but for the last one
};
VITRINE_SHARED_SIZE(MatmulParams, 28);

VITRINE_SHARED_END
#endif
