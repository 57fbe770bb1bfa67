// Arithmetic of doubles on their bits (uvec2, low word first), rounded to the nearest as IEEE 754 has it, for
// devices that have none. Finite numbers alone, and no result may be so small that it isn't normal; 0 has no
// sign.
#ifndef VITRINE_SOFT_DOUBLE_GLSL
#define VITRINE_SOFT_DOUBLE_GLSL

const uint double_sign = 0x80000000u;

bool double_is_zero(uvec2 a) { return (a.y & ~double_sign) == 0u; }
int double_exponent(uvec2 a) { return int(a.y >> 20 & 0x7ffu); }
uvec2 double_minus(uvec2 a) { return double_is_zero(a) ? a : uvec2(a.x, a.y ^ double_sign); }

// Its 53 bits at the top of 64.
uvec2 double_bits(uvec2 a) {
  return uvec2(a.x << 11, (a.y & 0xfffffu | 0x100000u) << 11 | a.x >> 21);
}

// The number with the 53 bits that 64 round to, whose topmost is set and worth 2^(exponent - 1023); the
// lowest stands for all that was lost.
uvec2 double_rounded(uint sign_bit, int exponent, uvec2 m) {
  const uint rest = m.x & 0x7ffu;
  uvec2 bits = uvec2(m.x >> 11 | m.y << 21, m.y >> 11);
  const bool up = rest > 0x400u || (rest == 0x400u && (bits.x & 1u) != 0u);
  // The bit that isn't stored counts the exponent up, and so does a carry.
  bits.y += uint(exponent - 1) << 20;
  if (up) {
    bits.x += 1u;
    if (bits.x == 0u) bits.y += 1u;
  }
  return uvec2(bits.x, bits.y | sign_bit);
}

// The number m 2^power, m being 64 bits of which not all are 0.
uvec2 double_from_bits(uint sign_bit, int power, uvec2 m) {
  const int top = m.y != 0u ? 32 + findMSB(m.y) : findMSB(m.x);
  const uint shift = uint(63 - top);
  if (shift >= 32u) {
    m = uvec2(0u, m.x << (shift - 32u));
  } else if (shift > 0u) {
    m = uvec2(m.x << shift, m.y << shift | m.x >> (32u - shift));
  }
  return double_rounded(sign_bit, power + top + 1023, m);
}

uvec2 double_from_int(int i) {
  if (i == 0) return uvec2(0u);
  return double_from_bits(i < 0 ? double_sign : 0u, 0, uvec2(uint(abs(i)), 0u));
}
// Half of i.
uvec2 double_from_half(int i) {
  if (i == 0) return uvec2(0u);
  return double_from_bits(i < 0 ? double_sign : 0u, -1, uvec2(uint(abs(i)), 0u));
}

uvec2 double_product(uvec2 a, uvec2 b) {
  if (double_is_zero(a) || double_is_zero(b)) return uvec2(0u);
  const uvec2 m = double_bits(a), n = double_bits(b);
  uint high, low, word1, word2, word3, carry, unused;
  umulExtended(m.x, n.x, word1, unused);
  const uint word0 = unused;
  umulExtended(m.y, n.y, word3, word2);
  umulExtended(m.y, n.x, high, low);
  word1 = uaddCarry(word1, low, carry);
  word2 = uaddCarry(word2, carry, carry);
  word3 += carry;
  word2 = uaddCarry(word2, high, carry);
  word3 += carry;
  umulExtended(m.x, n.y, high, low);
  word1 = uaddCarry(word1, low, carry);
  word2 = uaddCarry(word2, carry, carry);
  word3 += carry;
  word2 = uaddCarry(word2, high, carry);
  word3 += carry;
  int exponent = double_exponent(a) + double_exponent(b) - 1022;
  if ((word3 & 0x80000000u) == 0u) {
    word3 = word3 << 1 | word2 >> 31;
    word2 = word2 << 1 | word1 >> 31;
    word1 <<= 1;
    --exponent;
  }
  return double_rounded((a.y ^ b.y) & double_sign, exponent, uvec2(word2 | ((word1 | word0) != 0u ? 1u : 0u), word3));
}

uvec2 double_sum(uvec2 a, uvec2 b) {
  if (double_is_zero(a)) return b;
  if (double_is_zero(b)) return a;
  const uint size_a = a.y & ~double_sign, size_b = b.y & ~double_sign;
  if (size_a < size_b || (size_a == size_b && a.x < b.x)) {
    const uvec2 c = a;
    a = b;
    b = c;
  }
  // Room for a carry at the top.
  uvec2 m = double_bits(a), n = double_bits(b);
  m = uvec2(m.x >> 1 | m.y << 31, m.y >> 1);
  n = uvec2(n.x >> 1 | n.y << 31, n.y >> 1);
  const uint apart = uint(double_exponent(a) - double_exponent(b));
  if (apart >= 64u) {
    n = uvec2(1u, 0u);
  } else if (apart >= 32u) {
    const uint lost = n.x | (apart == 32u ? 0u : n.y << (64u - apart));
    n = uvec2(n.y >> (apart - 32u) | (lost != 0u ? 1u : 0u), 0u);
  } else if (apart > 0u) {
    const uint lost = n.x << (32u - apart);
    n = uvec2(n.x >> apart | n.y << (32u - apart) | (lost != 0u ? 1u : 0u), n.y >> apart);
  }
  uint carry;
  if (((a.y ^ b.y) & double_sign) == 0u) {
    m.x = uaddCarry(m.x, n.x, carry);
    m.y += n.y + carry;
  } else {
    m.x = usubBorrow(m.x, n.x, carry);
    m.y -= n.y + carry;
    if ((m.x | m.y) == 0u) return uvec2(0u);
  }
  return double_from_bits(a.y & double_sign, double_exponent(a) - 1023 - 62, m);
}

uvec2 double_difference(uvec2 a, uvec2 b) { return double_sum(a, double_minus(b)); }

// a / n for n from 1 to 65535: six digits of sixteen bits.
uvec2 double_quotient(uvec2 a, uint n) {
  if (double_is_zero(a)) return a;
  const uvec2 m = double_bits(a);
  uint rest = 0u, words[3];
  const uint digits[6] = {m.y >> 16, m.y & 0xffffu, m.x >> 16, m.x & 0xffffu, 0u, 0u};
  for (uint i = 0u; i < 3u; ++i) {
    rest = rest << 16 | digits[2u * i];
    const uint high = rest / n;
    rest = rest % n << 16 | digits[2u * i + 1u];
    words[i] = high << 16 | rest / n;
    rest %= n;
  }
  // The first bit of the quotient is among the sixteen that the divisor may take away, and one.
  const uint shift = uint(31 - findMSB(words[0]));
  uvec2 q = uvec2(words[1], words[0]);
  uint lost = words[2];
  if (shift > 0u) {
    q = uvec2(words[1] << shift | words[2] >> (32u - shift), words[0] << shift | words[1] >> (32u - shift));
    lost = words[2] << shift;
  }
  return double_rounded(a.y & double_sign, double_exponent(a) - int(shift),
                        uvec2(q.x | ((lost | rest) != 0u ? 1u : 0u), q.y));
}

// The largest whole number that is not above it; it must fit.
int double_floor(uvec2 a) {
  if (double_is_zero(a)) return 0;
  const int exponent = double_exponent(a) - 1023;
  const bool negative = (a.y & double_sign) != 0u;
  if (exponent < 0) return negative ? -1 : 0;
  const uvec2 m = double_bits(a);
  const int whole = int(m.y >> uint(31 - exponent));
  const uint rest = (exponent == 31 ? 0u : m.y << uint(exponent + 1)) | m.x;
  return negative ? -whole - (rest != 0u ? 1 : 0) : whole;
}

// Rounded to a float, and a float as it is; normal ones and 0.
float double_to_float(uvec2 a) {
  if (double_is_zero(a)) return 0.0;
  const uvec2 m = double_bits(a);
  const uint rest = m.y & 0xffu;
  uint bits = (m.y >> 8) + (uint(double_exponent(a) - 1023 + 126) << 23);
  if (rest > 0x80u || (rest == 0x80u && (m.x != 0u || (bits & 1u) != 0u))) bits += 1u;
  return uintBitsToFloat(bits | a.y & double_sign);
}
uvec2 double_from_float(float x) {
  const uint bits = floatBitsToUint(x);
  if ((bits & ~double_sign) == 0u) return uvec2(0u);
  const uint exponent = (bits >> 23 & 0xffu) + 896u;
  return uvec2(bits << 29, bits & double_sign | exponent << 20 | bits >> 3 & 0xfffffu);
}

#endif
