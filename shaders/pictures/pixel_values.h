// Parameters of pixel_values.comp.
#ifndef VITRINE_PIXEL_VALUES_H
#define VITRINE_PIXEL_VALUES_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct PixelValuesParams {
  uint count;  // pixels of all pictures
};
VITRINE_SHARED_SIZE(PixelValuesParams, 4);
VITRINE_SHARED_END

#endif
