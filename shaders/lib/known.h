// The sixteen digits that lib/known.glsl looks numbers up in, as the last member of a shader's parameters.
#ifndef VITRINE_KNOWN_H
#define VITRINE_KNOWN_H
#include "shared.h"

#define VITRINE_KNOWN_DIGITS uint digits[16]

#ifdef __cplusplus
namespace vitrine::shader {
template <typename Params>
Params with_digits(Params params) {
  for (uint i = 0; i < 16; ++i) params.digits[i] = i;
  return params;
}
}  // namespace vitrine::shader
#endif

#endif
