//! variant f32_f16 FROM4=uvec4 OUT=uint16_t OUT4=u16vec4 FOURS=1 TO_F32=uint FROM_F32=f16_from_f32 needs=storage16
//! variant f32_bf16 FROM4=uvec4 OUT=uint16_t OUT4=u16vec4 FOURS=1 TO_F32=uint FROM_F32=bf16_from_f32 needs=storage16
//! variant f16_f32 FROM4=u16vec4 OUT=uint OUT4=uvec4 FOURS=1 TO_F32=f32_from_f16 FROM_F32=uint needs=storage16
//! variant f16_bf16 FROM4=u16vec4 OUT=uint16_t OUT4=u16vec4 FOURS=2 TO_F32=f32_from_f16 FROM_F32=bf16_from_f32 needs=storage16
//! variant bf16_f32 FROM4=u16vec4 OUT=uint OUT4=uvec4 FOURS=1 TO_F32=f32_from_bf16 FROM_F32=uint needs=storage16
//! variant bf16_f16 FROM4=u16vec4 OUT=uint16_t OUT4=u16vec4 FOURS=2 TO_F32=f32_from_bf16 FROM_F32=f16_from_f32 needs=storage16
// convert.comp with 16 bytes an invocation.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require  // to index u16vec4; no arithmetic
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/half_bits.glsl"
#include "convert.h"
#define RESULT4 uvec4
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool whole_runs = false;

layout(push_constant) uniform Push { ConvertParams p; };
layout(set = 0, binding = 0) readonly buffer X { FROM4 x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { OUT4 y[]; };

uint converted(uint bits) { return FROM_F32(TO_F32(bits)); }

uvec4 four(uint first, uint f) {
  const uvec4 v = uvec4(x[first + f]);
  return uvec4(converted(v.x), converted(v.y), converted(v.z), converted(v.w));
}
uint one(uint i) { return converted(uint(x[i >> 2][i & 3])); }
#include "lib/wide.glsl"
