// Parameters of centered_rows.comp.
#ifndef VITRINE_CENTERED_ROWS_H
#define VITRINE_CENTERED_ROWS_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

struct CenteredRowsParams {
  uint first_row;
  uint rows;
  uint width;
};
VITRINE_SHARED_SIZE(CenteredRowsParams, 12);

VITRINE_SHARED_END
#endif
