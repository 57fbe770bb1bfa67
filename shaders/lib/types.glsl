// Storage types. Arithmetic is always 32-bit: a shader reads a stored element with `load_float(x[i])`
// and writes one with `y[i] = store_as(T, value)`, so one source serves f32 and f16 tensors.
//
// The variant line of the shader says what the storage types are (`T=float`, `T=float16_t`); 16-bit
// ones need only 16-bit storage of the device, not 16-bit arithmetic. The extension costs a 32-bit
// variant nothing: SPIR-V asks for the capability only when a 16-bit type is in fact used.
#ifndef VITRINE_TYPES_GLSL
#define VITRINE_TYPES_GLSL

#extension GL_EXT_shader_16bit_storage : require

#define load_float(element) float(element)
#define store_as(TYPE, value) TYPE(value)

// The value as f16 would hold it, the nearest and of two the even one, and an infinity where that is too large for
// it. packHalf2x16 may round as it likes (Mesa's software driver before 26.1 cuts off), but for what is exact.
float rounded_to_half(float value) {
  const uint bits = floatBitsToUint(value), exponents = 255u << 23;
  const float magnitude = abs(value);
  // A power of two so far above the value, or above the smallest that isn't subnormal in f16, that the last bit
  // of the sum is the last one that f16 keeps.
  const float above = uintBitsToFloat(max(bits & exponents, 113u << 23) + (13u << 23));
  precise const float sum = magnitude + above;
  precise const float rounded = sum - above;
  const float infinity = uintBitsToFloat(exponents);
  // Below 65520, compared as bits: by these NaN is above all numbers.
  const bool fits = (bits & 0x7fffffffu) < 0x477ff000u;
  return fits ? uintBitsToFloat(floatBitsToUint(rounded) | bits & 1u << 31) : value * infinity;
}

#endif
