// Parameters of matmul_few_rows.comp.
#ifndef VITRINE_MATMUL_FEW_ROWS_H
#define VITRINE_MATMUL_FEW_ROWS_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

struct MatmulFewRowsParams {
  uint m;
  uint n;
};
VITRINE_SHARED_SIZE(MatmulFewRowsParams, 8);

VITRINE_SHARED_END
#endif
