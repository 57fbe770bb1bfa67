// Parameters of grouped_matmul.comp.
#ifndef VITRINE_GROUPED_MATMUL_H
#define VITRINE_GROUPED_MATMUL_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct GroupedMatmulParams {
  uint rows;
  uint groups;
  uint n;     // outputs of a group
  uint k;     // inputs of a group
  uint jobs;  // pieces of rows_each rows by one column
};
VITRINE_SHARED_SIZE(GroupedMatmulParams, 20);
VITRINE_SHARED_END

#endif
