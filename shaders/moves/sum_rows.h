// Parameters of sum_rows.comp.
#ifndef VITRINE_SUM_ROWS_H
#define VITRINE_SUM_ROWS_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct SumRowsParams {
  uint count;   // elements of X
  uint stride;  // of the result: how far apart are elements that are summed
};
VITRINE_SHARED_SIZE(SumRowsParams, 8);
VITRINE_SHARED_END

#endif
