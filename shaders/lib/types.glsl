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

// The value as f16 would hold it, an infinity where that is too large for it.
float rounded_to_half(float value) { return unpackHalf2x16(packHalf2x16(vec2(value, 0.0))).x; }

#endif
