// Parameters of gated_product.comp.
#ifndef VITRINE_GATED_PRODUCT_H
#define VITRINE_GATED_PRODUCT_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct GatedProductParams {
  uint count;  // elements of the result
};
VITRINE_SHARED_SIZE(GatedProductParams, 4);
VITRINE_SHARED_END

#endif
