// Parameters of pool_windows.comp. What it divides by are specialization constants.
#ifndef VITRINE_POOL_WINDOWS_H
#define VITRINE_POOL_WINDOWS_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct PoolWindowsParams {
  uint count;          // pieces of work
  uint height, width;  // of a map that is read
  uint top, left;      // pixels in front of the first one that the first window has
  uint stride_y, stride_x;
};
VITRINE_SHARED_SIZE(PoolWindowsParams, 28);
VITRINE_SHARED_END

#endif
