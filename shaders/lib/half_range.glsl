// The power of two that brings what is at most `largest` just below the end of f16's range, and the one that undoes
// it: products of f16 whose terms are far smaller than f16's least normal number, as gradients are. Where the largest is
// zero, infinite or NaN nothing is to be gained, and what there is stays what it is.
#ifndef VITRINE_HALF_RANGE_GLSL
#define VITRINE_HALF_RANGE_GLSL

// The exponent as it is stored. Of the product that of 2^14 or, for the very smallest, less.
uint half_range_exponent(float largest) {
  const uint stored = floatBitsToUint(largest) >> 23 & 255u;
  return stored == 0u || stored == 255u ? 127u : min(127u + 14u + 127u - stored, 253u);
}
float half_range_factor(float largest) { return uintBitsToFloat(half_range_exponent(largest) << 23); }
float half_range_undo(float largest) { return uintBitsToFloat((254u - half_range_exponent(largest)) << 23); }

#endif
