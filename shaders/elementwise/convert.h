// Parameters of convert.comp.
#ifndef VITRINE_CONVERT_H
#define VITRINE_CONVERT_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct ConvertParams {
  uint count;
};
VITRINE_SHARED_SIZE(ConvertParams, 4);
VITRINE_SHARED_END

#endif
