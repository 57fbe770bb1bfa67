#include "runtime/util/portable_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace vitrine {

// x = m 2^e with m near 1, log m = 2 atanh((m-1)/(m+1)).
double portable_log(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double series = 0;
  for (int k = 23; k >= 1; k -= 2) series = series * s2 + 1.0 / k;
  return 2 * s * series + exponent * 0.6931471805599453;
}

// x = n log 2 + r with |r| below 0.35, exp(x) = 2^n exp(r).
double portable_exp(double x) {
  if (std::isnan(x)) return x;
  if (x < -708) return 0;
  if (x > 709) return std::numeric_limits<double>::infinity();
  const double n = std::floor(x * 1.4426950408889634 + 0.5);
  // log 2 as the sum of what n times is exact and the rest.
  const double r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
  double series = 1;
  for (int k = 14; k >= 1; --k) series = 1 + r * series / k;
  return series * std::bit_cast<double>(static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52);
}

}  // namespace vitrine
