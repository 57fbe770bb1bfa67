// NaN in is NaN out, with every driver. Sums, products and quotients keep a NaN; what max, min, clamp, exp, log, sqrt
// and comparisons make of one, GLSL leaves to the driver, and isnan() too. So these look at the bits.
#ifndef VITRINE_NONFINITE_GLSL
#define VITRINE_NONFINITE_GLSL

bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
bool is_finite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }

// The value, but NaN where what it was made of is.
float nan_or(float origin, float value) { return is_nan(origin) ? origin : value; }

// For single weights. A row of them costs less: the sum of what exp is given is NaN where one of these is.
float exp_or_nan(float x) { return nan_or(x, exp(x)); }

#endif
