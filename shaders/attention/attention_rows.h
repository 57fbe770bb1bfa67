// Parameters of attention_rows.comp and attention_rows_cpu_lanes.comp. Strides and offsets count elements.
#ifndef VITRINE_ATTENTION_ROWS_H
#define VITRINE_ATTENTION_ROWS_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

// Rows first_row to first_row + rows - 1 of every head's attention weights.
// Row n of q starts at (b * queries + n) * q_stride + q_offset, and head h of it h * key_width further.
struct AttentionRowsParams {
  uint queries;
  uint keys;
  uint heads;
  uint q_stride;
  uint k_stride;
  uint q_offset;
  uint k_offset;
  float scale;
  uint first_row;
  uint rows;
  uint count;  // elements of the result
};
VITRINE_SHARED_SIZE(AttentionRowsParams, 44);

VITRINE_SHARED_END
#endif
