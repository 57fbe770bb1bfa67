// Parameters of the shaders matmul_cpu_chunk*.comp.
#ifndef VITRINE_MATMUL_CHUNK_H
#define VITRINE_MATMUL_CHUNK_H
#include "lib/known.h"
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

struct MatmulChunkParams {
  uint blocks;      // of rows
  uint steps;       // of K in all
  uint first_step;  // of those, of this chunk
  uint go_on;       // 1: from the sums of the chunks before
  VITRINE_KNOWN_DIGITS;
};
VITRINE_SHARED_SIZE(MatmulChunkParams, 80);

struct MatmulChunkEndParams {
  uint rows;     // of A and C
  uint columns;  // of C
  uint blocks;   // of rows
};
VITRINE_SHARED_SIZE(MatmulChunkEndParams, 12);

VITRINE_SHARED_END
#endif
