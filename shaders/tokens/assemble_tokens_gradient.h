// Parameters of assemble_tokens_gradient.comp.
#ifndef VITRINE_ASSEMBLE_TOKENS_GRADIENT_H
#define VITRINE_ASSEMBLE_TOKENS_GRADIENT_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct AssembleTokensGradientParams {
  uint images;
  uint tokens;          // in the sequence, an image
  uint prefix;          // those before the patches
  uint registers;       // the last of these
  uint position_from;   // tokens before this one have no positions
  uint position_skips;  // nor have so many in front of the patches
};
VITRINE_SHARED_SIZE(AssembleTokensGradientParams, 24);
VITRINE_SHARED_END

#endif
