// Four consecutive elements of an f32 or f16 tensor, moved as 64-bit words through buffer addresses. For
// kernels on CPU-type devices, where a load whose address differs between lanes costs the same for 64
// bits as for 16. Elements must start at a multiple of four.
#ifndef VITRINE_QUADS_GLSL
#define VITRINE_QUADS_GLSL

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "lib/types.glsl"

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer InWords { uint64_t at[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) writeonly buffer OutWords { uint64_t at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Floats { float at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Uints { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer OutFloats { float at[]; };

vec4 load_quad_f32(InWords words, uint quad) {
  return vec4(uintBitsToFloat(unpack32(words.at[2 * quad])), uintBitsToFloat(unpack32(words.at[2 * quad + 1])));
}

vec4 load_quad_f16(InWords words, uint quad) {
  const uvec2 halves = unpack32(words.at[quad]);
  return vec4(unpackHalf2x16(halves.x), unpackHalf2x16(halves.y));
}

void store_quad_f32(OutWords words, uint quad, vec4 value) {
  words.at[2 * quad] = pack64(floatBitsToUint(value.xy));
  words.at[2 * quad + 1] = pack64(floatBitsToUint(value.zw));
}

void store_quad_f16(OutWords words, uint quad, vec4 value) {
  vec4 halves;
  for (uint i = 0; i < 4; ++i) halves[i] = rounded_to_half(value[i]);
  words.at[quad] = pack64(uvec2(packHalf2x16(halves.xy), packHalf2x16(halves.zw)));
}

// An f32 copy of a quad: of an f32 one word by word, never taken apart.
void move_quad_f32(OutWords to, uint to_quad, InWords from, uint from_quad) {
  to.at[2 * to_quad] = from.at[2 * from_quad];
  to.at[2 * to_quad + 1] = from.at[2 * from_quad + 1];
}

void widen_quad_f16(OutWords to, uint to_quad, InWords from, uint from_quad) {
  store_quad_f32(to, to_quad, load_quad_f16(from, from_quad));
}

#endif
