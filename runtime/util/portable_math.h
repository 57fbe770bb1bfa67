// Functions whose bits don't depend on the math library: only +, -, *, / are used, which IEEE 754 rounds
// alike everywhere. Accurate to about 1e-15 relative to the result or, of a logarithm near 0, to 1e-16.
#pragma once

namespace vitrine {

// Natural logarithm of a positive normal number.
double portable_log(double x);
// 0 below -708 and infinity above 709, where the result would be no normal number.
double portable_exp(double x);

}  // namespace vitrine
