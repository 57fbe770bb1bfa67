// Parameters of assemble_tokens.comp.
#ifndef VITRINE_ASSEMBLE_TOKENS_H
#define VITRINE_ASSEMBLE_TOKENS_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct AssembleTokensParams {
  uint rows;  // images times tokens an image
  uint tokens;  // in the result, an image
  uint patches;  // an image
  uint dims;
  uint registers;
  uint first_register;  // their place in the sequence
  uint first_patch;  // as many tokens stand before the patches
  uint position_shift_registers;  // 1: the registers have no positions
  uint position_from;  // tokens before this one have no positions
};
VITRINE_SHARED_SIZE(AssembleTokensParams, 36);
VITRINE_SHARED_END

#endif
