// Parameters of erase_boxes.comp, the words of a box, and what stands in it.
#ifndef VITRINE_ERASE_BOXES_H
#define VITRINE_ERASE_BOXES_H

#include "lib/shared.h"

#define VITRINE_BOX_TOP 0
#define VITRINE_BOX_BOTTOM 1  // behind the last row
#define VITRINE_BOX_LEFT 2
#define VITRINE_BOX_RIGHT 3
#define VITRINE_BOX_WORDS 4

#define VITRINE_ERASE_CONST 0  // zeros
#define VITRINE_ERASE_RAND 1   // a normally distributed number for each box and channel
#define VITRINE_ERASE_PIXEL 2  // one for each element

VITRINE_SHARED_BEGIN
struct EraseBoxesParams {
  uint count;  // elements of all samples
  uint stream;
};
VITRINE_SHARED_SIZE(EraseBoxesParams, 8);
VITRINE_SHARED_END

#endif
