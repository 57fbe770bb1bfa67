// Parameters of patch_embed_cpu_chunk.comp.
#ifndef VITRINE_PATCH_EMBED_CHUNK_H
#define VITRINE_PATCH_EMBED_CHUNK_H
#include "lib/known.h"
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

struct PatchEmbedChunkParams {
  uint blocks;       // of patches
  uint steps;        // of K in all
  uint first_step;   // of those, of this chunk
  uint first_pixel;  // of it, counted from where a patch begins
  uint go_on;        // 1: from the sums of the chunks before
  VITRINE_KNOWN_DIGITS;
};
VITRINE_SHARED_SIZE(PatchEmbedChunkParams, 84);

VITRINE_SHARED_END
#endif
