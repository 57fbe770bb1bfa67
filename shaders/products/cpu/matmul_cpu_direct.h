// Parameters of the shaders matmul_cpu_direct*.comp.
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

struct MatmulDirectColumnsParams {
  uint rows;         // of A and C
  uint columns;      // of C
  uint depth;        // K
  uint slice_steps;  // whole steps of K that a slice takes
  // From one value of K to the next, and from one block of rows, or of columns, to the next.
  uint row_stride, row_block;
  uint weight_stride, weight_block;
};
VITRINE_SHARED_SIZE(MatmulDirectColumnsParams, 32);

struct MatmulDirectStripsParams {
  uint columns;
  uint depth;   // K
  uint padded;  // K in whole steps
  uint count;   // strips times K, or times the padded K to have zeros behind it
};
VITRINE_SHARED_SIZE(MatmulDirectStripsParams, 16);

struct MatmulDirectPanelsParams {
  uint columns;      // of C: rows of W
  uint depth;        // K
  uint steps;        // of K, the last one padded with zeros
  uint group_steps;  // that a workgroup takes
};
VITRINE_SHARED_SIZE(MatmulDirectPanelsParams, 16);

struct MatmulDirectRowsParams {
  uint rows;   // of A
  uint depth;  // its columns: K
  uint steps;  // of K, the last one padded with zeros
  uint count;  // elements of the packed copy
};
VITRINE_SHARED_SIZE(MatmulDirectRowsParams, 16);

VITRINE_SHARED_END
#endif
