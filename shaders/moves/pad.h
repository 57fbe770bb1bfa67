// Parameters of pad.comp. What it divides by are specialization constants.
#ifndef VITRINE_PAD_H
#define VITRINE_PAD_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct PadParams {
  uint count;  // elements of the result
  uint begin;  // where x begins in a run of the result
};
VITRINE_SHARED_SIZE(PadParams, 8);
VITRINE_SHARED_END

#endif
