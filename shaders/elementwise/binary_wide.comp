//! variant f32_f32 A4=vec4 B4=vec4 OUT=float OUT4=vec4 FOURS=1
//! variant f32_f16 A4=vec4 B4=f16vec4 OUT=float OUT4=vec4 FOURS=1 needs=storage16
//! variant f16_f32 A4=f16vec4 B4=vec4 OUT=float OUT4=vec4 FOURS=1 needs=storage16
//! variant f16_f16 A4=f16vec4 B4=f16vec4 OUT=float16_t OUT4=f16vec4 FOURS=2 needs=storage16
// binary.comp with 16 bytes an invocation. Where B repeats, it does so in whole fours.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require  // to index f16vec4; no arithmetic
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/tile.glsl"
#include "binary.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint function = VITRINE_BINARY_ADD;
layout(constant_id = 2) const uint period = 0;  // elements of B where it repeats, else 0
layout(constant_id = 3) const bool whole_runs = false;

layout(push_constant) uniform Push { BinaryParams p; };
#include "lib/binary.glsl"
layout(set = 0, binding = 0) readonly buffer A { A4 a[]; };
layout(set = 0, binding = 1) readonly buffer B { B4 b[]; };
layout(set = 0, binding = 2) writeonly buffer Y { OUT4 y[]; };

vec4 four(uint first, uint f) {
  const uint q = first + f;
  const vec4 left = vec4(a[q]), right = vec4(b[period == 0 ? q : q % (period / 4)]);
  return binary(left, right);
}
float one(uint i) {
  const float left = element_of(a, i), right = element_of(b, period == 0 ? i : i % period);
  return binary(left, right);
}
#include "lib/wide.glsl"
