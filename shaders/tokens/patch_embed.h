// Parameters of patch_embed.comp. What it divides by are specialization constants.
#ifndef VITRINE_PATCH_EMBED_H
#define VITRINE_PATCH_EMBED_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct PatchEmbedParams {
  uint tokens;  // images times patches an image
  uint dims;  // outputs a token
  uint depth;  // inputs a token: channels * patch_height * patch_width
  uint image_elements;  // channels * height * width
  uint channel_elements;  // height * width
  uint image_width;
};
VITRINE_SHARED_SIZE(PatchEmbedParams, 24);
VITRINE_SHARED_END

#endif
