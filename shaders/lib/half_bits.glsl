// Conversions between the bit patterns of f32, f16 and bf16 in integer arithmetic: round to nearest
// even, subnormal numbers kept, NaN stays NaN (made quiet, with the upper bits of its payload). The
// device's own conversions promise neither the rounding nor subnormal numbers.
#ifndef VITRINE_HALF_BITS_GLSL
#define VITRINE_HALF_BITS_GLSL

// value / 2^bits, rounded to nearest, ties to even; 0 < bits < 32.
uint shift_right_to_even(uint value, uint bits) {
  const uint quotient = value >> bits;
  const uint rest = value & ((1u << bits) - 1u);
  const uint tie = 1u << (bits - 1u);
  return quotient + uint(rest > tie || (rest == tie && (quotient & 1u) == 1u));
}

uint f32_from_bf16(uint bits) { return bits << 16; }

uint bf16_from_f32(uint bits) {
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bits >> 16 | 0x40u;
  return shift_right_to_even(bits, 16u);  // a carry out of the fraction is the next exponent, or infinity
}

uint f32_from_f16(uint bits) {
  const uint sign = (bits & 0x8000u) << 16;
  const uint exponent = bits >> 10 & 31u;
  const uint fraction = bits & 0x3ffu;
  if (exponent == 31u) return sign | 0x7f800000u | (fraction == 0u ? 0u : 0x400000u | fraction << 13);
  if (exponent != 0u) return sign | (exponent + 112u) << 23 | fraction << 13;
  if (fraction == 0u) return sign;
  // Subnormal: fraction * 2^-24. Its leading one becomes the implicit one.
  const uint leading = uint(findMSB(fraction));
  return sign | (leading + 103u) << 23 | (fraction << (23u - leading) & 0x7fffffu);
}

uint f16_from_f32(uint bits) {
  const uint sign = bits >> 16 & 0x8000u;
  const uint magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u | (magnitude >> 13 & 0x3ffu);
  if (magnitude >= 0x47800000u) return sign | 0x7c00u;  // 2^16 and more
  // Exponent 113 is f16's smallest normal one: re-bias, then drop 13 bits. A carry may reach infinity.
  if (magnitude >= 0x38800000u) return sign | shift_right_to_even(magnitude - (112u << 23), 13u);
  if (magnitude < 0x33000000u) return sign;  // below half the smallest subnormal number
  // A subnormal result counts units of 2^-24.
  const uint exponent = magnitude >> 23;
  return sign | shift_right_to_even(magnitude & 0x7fffffu | 0x800000u, 126u - exponent);
}

#endif
