// Parameters of transpose.comp and transpose_cpu_lanes.comp.
#ifndef VITRINE_TRANSPOSE_H
#define VITRINE_TRANSPOSE_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
// Of each matrix of X.
struct TransposeParams {
  uint rows;
  uint columns;
  uint tiles_across;  // tiles, or blocks of rows, that cover a matrix from one side to the other
  uint tiles;         // tiles of all matrices
};
VITRINE_SHARED_SIZE(TransposeParams, 16);
VITRINE_SHARED_END

#endif
