#include "runtime/util/half.h"

#include <cstddef>
#include <string>

#include "runtime/util/error.h"

namespace vitrine {
namespace {

constexpr uint32_t f32_infinity = 0x7F80'0000;
constexpr uint32_t f16_infinity = 0x7C00;

// The upper 32-shift bits of `value`, the dropped ones rounded to nearest, ties to even.
constexpr uint32_t shift_right_rounded(uint32_t value, unsigned shift) {
  const uint32_t half = uint32_t{1} << (shift - 1);
  const uint32_t odd = (value >> shift) & 1;
  return (value + half - 1 + odd) >> shift;
}

template <typename From, typename To, typename Convert>
void convert_all(std::span<const From> from, std::span<To> to, Convert convert) {
  if (from.size() != to.size()) {
    throw Error(ErrorCode::usage, "a conversion of " + std::to_string(from.size()) +
                                      " numbers was given room for " + std::to_string(to.size()));
  }
  for (size_t i = 0; i < from.size(); ++i) to[i] = convert(from[i]);
}

}  // namespace

uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7FFF'FFFF;

  if (magnitude > f32_infinity) {  // NaN: a payload that does not fit must not turn it into Inf
    const uint32_t payload = (magnitude & 0x007F'FFFF) >> 13;
    return static_cast<uint16_t>(sign | f16_infinity | (payload != 0 ? payload : 0x0200));
  }
  constexpr uint32_t overflow = 0x477F'F000;  // 65520, halfway between 65504 and the next step
  if (magnitude >= overflow) return static_cast<uint16_t>(sign | f16_infinity);

  constexpr uint32_t smallest_normal = 0x3880'0000;  // 2^-14
  if (magnitude >= smallest_normal) {
    constexpr uint32_t rebias = (127 - 15) << 23;
    return static_cast<uint16_t>(sign | shift_right_rounded(magnitude - rebias, 13));
  }
  const uint32_t exponent = magnitude >> 23;
  constexpr uint32_t all_lost = 102;  // below 2^-25 even rounding up gives zero
  if (exponent < all_lost) return static_cast<uint16_t>(sign);
  // A subnormal counts in steps of 2^-24, the implicit one becomes explicit.
  const uint32_t mantissa = (magnitude & 0x007F'FFFF) | 0x0080'0000;
  return static_cast<uint16_t>(sign | shift_right_rounded(mantissa, 126 - exponent));
}

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000U} << 16;
  const uint32_t magnitude = bits & 0x7FFFU;
  if (magnitude >= f16_infinity) {
    return std::bit_cast<float>(sign | f32_infinity | ((magnitude & 0x03FF) << 13));
  }
  if (magnitude < 0x0400) {  // zero and subnormals: exact multiples of 2^-24
    const auto value = static_cast<float>(magnitude) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + ((127 - 15) << 23)));
}

uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFF'FFFF) > f32_infinity) {
    const uint32_t kept = bits >> 16;
    return static_cast<uint16_t>((kept & 0x007F) != 0 ? kept : kept | 0x0040);
  }
  return static_cast<uint16_t>(shift_right_rounded(bits, 16));  // carries into the exponent, up to Inf
}

void f32_to_f16(std::span<const float> values, std::span<uint16_t> bits) {
  convert_all(values, bits, [](float value) { return f32_to_f16(value); });
}
void f16_to_f32(std::span<const uint16_t> bits, std::span<float> values) {
  convert_all(bits, values, [](uint16_t value) { return f16_to_f32(value); });
}
void f32_to_bf16(std::span<const float> values, std::span<uint16_t> bits) {
  convert_all(values, bits, [](float value) { return f32_to_bf16(value); });
}
void bf16_to_f32(std::span<const uint16_t> bits, std::span<float> values) {
  convert_all(bits, values, [](uint16_t value) { return bf16_to_f32(value); });
}

}  // namespace vitrine
