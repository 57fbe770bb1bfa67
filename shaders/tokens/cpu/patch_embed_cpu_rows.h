// Parameters of patch_embed_cpu_rows.comp.
#ifndef VITRINE_PATCH_EMBED_ROWS_H
#define VITRINE_PATCH_EMBED_ROWS_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

struct PatchEmbedRowsParams {
  uint rows;  // patches of all images
  uint steps;
  uint count;                      // pieces of work: padded rows times steps
  uint channels, height, width;    // of an image
  uint patch_rows, patch_columns;  // patches down and across an image
};
VITRINE_SHARED_SIZE(PatchEmbedRowsParams, 32);

VITRINE_SHARED_END
#endif
