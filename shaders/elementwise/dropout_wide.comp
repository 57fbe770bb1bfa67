//! variant f32 T4=vec4 OUT=float OUT4=vec4 FOURS=1
//! variant f16 T4=f16vec4 OUT=float16_t OUT4=f16vec4 FOURS=2 needs=storage16
// dropout.comp with 16 bytes an invocation.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require  // to index f16vec4; no arithmetic
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/tile.glsl"
#include "lib/nonfinite.glsl"
#include "lib/philox.glsl"
#include "dropout.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint group = 1;  // elements that share a draw
layout(constant_id = 2) const bool whole_runs = false;

layout(push_constant) uniform Push { DropoutParams p; };
layout(set = 0, binding = 0) readonly buffer X { T4 x[]; };
layout(set = 0, binding = 1) readonly buffer Step { uint words[]; };
layout(set = 0, binding = 2) writeonly buffer Y { OUT4 y[]; };

bvec4 kept_of(uint block) { return kept_four(mask_source(words, p.stream, p.threshold), block, 0); }
float kept_or_zero(bool kept, float value) { return kept ? value * p.factor : nan_or(value, 0.0); }

vec4 four(uint first, uint f) {
  const uint i = 4 * (first + f);
  const bvec4 kept = kept_of(i / group / 4);  // a block of four draws begins and ends with a four
  vec4 value = vec4(x[first + f]);
  [[unroll]] for (uint n = 0; n < 4; ++n) value[n] = kept_or_zero(kept[(i + n) / group % 4], value[n]);
  return value;
}
float one(uint i) {
  const uint draw = i / group;
  return kept_or_zero(kept_of(draw / 4)[draw % 4], element_of(x, i));
}
#include "lib/wide.glsl"
