// 16-bit floating point on the CPU: IEEE binary16 (f16) and the upper half of a float (bf16).
//
// Conversions from f32 round to nearest, ties to even; conversions to f32 are exact. NaN stays NaN
// with its sign and as much of its payload as fits, Inf stays Inf, and f16 keeps its subnormals.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace vitrine {

uint16_t f32_to_f16(float value);
float f16_to_f32(uint16_t bits);

uint16_t f32_to_bf16(float value);
inline float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// Whole arrays; both spans have the same length.
void f32_to_f16(std::span<const float> values, std::span<uint16_t> bits);
void f16_to_f32(std::span<const uint16_t> bits, std::span<float> values);
void f32_to_bf16(std::span<const float> values, std::span<uint16_t> bits);
void bf16_to_f32(std::span<const uint16_t> bits, std::span<float> values);

}  // namespace vitrine
