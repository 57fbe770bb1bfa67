// Parameters of token_windows.comp.
#ifndef VITRINE_TOKEN_WINDOWS_H
#define VITRINE_TOKEN_WINDOWS_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct TokenWindowsParams {
  uint count;  // units of the result
};
VITRINE_SHARED_SIZE(TokenWindowsParams, 4);
VITRINE_SHARED_END

#endif
