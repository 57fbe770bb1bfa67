// Parameters of unfold.comp, unfold_cpu_runs.comp and fold.comp. What they divide by are specialization
// constants.
#ifndef VITRINE_UNFOLD_H
#define VITRINE_UNFOLD_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct UnfoldParams {
  uint count;                    // pieces of work
  uint channels, height, width;  // of an image
};
VITRINE_SHARED_SIZE(UnfoldParams, 16);
VITRINE_SHARED_END

#endif
