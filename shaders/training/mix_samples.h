// Parameters of mix_samples.comp, and the words that say how a sample is mixed.
#ifndef VITRINE_MIX_SAMPLES_H
#define VITRINE_MIX_SAMPLES_H

#include "lib/shared.h"

#define VITRINE_MIX_PARTNER 0  // the sample that this one is mixed with
#define VITRINE_MIX_OWN 1      // the bits of a float: what a pixel is multiplied by outside of the box
#define VITRINE_MIX_OTHER 2    // the same of the partner's pixel, which is not looked at where this is 0
#define VITRINE_MIX_TOP 3      // the box, in which the partner's pixels stand as they are
#define VITRINE_MIX_BOTTOM 4
#define VITRINE_MIX_LEFT 5
#define VITRINE_MIX_RIGHT 6
#define VITRINE_MIX_WORDS 8

VITRINE_SHARED_BEGIN
struct MixSamplesParams {
  uint count;    // elements of all samples
  uint samples;  // how many there are
};
VITRINE_SHARED_SIZE(MixSamplesParams, 8);
VITRINE_SHARED_END

#endif
