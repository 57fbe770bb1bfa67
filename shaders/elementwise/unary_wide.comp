//! variant f32 T4=vec4 OUT=float OUT4=vec4 FOURS=1
//! variant f16 T4=f16vec4 OUT=float16_t OUT4=f16vec4 FOURS=2 needs=storage16
// unary.comp with 16 bytes an invocation.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require  // to index f16vec4; no arithmetic
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/tile.glsl"
#include "lib/activation.glsl"
#include "unary.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint function = VITRINE_ACTIVATION_GELU;
layout(constant_id = 2) const bool whole_runs = false;

layout(push_constant) uniform Push { UnaryParams p; };
layout(set = 0, binding = 0) readonly buffer X { T4 x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { OUT4 y[]; };

float apply(float value) { return function == VITRINE_UNARY_SCALE ? value * p.factor : activate(function, value); }

vec4 four(uint first, uint f) {
  const vec4 v = vec4(x[first + f]);
  return vec4(apply(v.x), apply(v.y), apply(v.z), apply(v.w));
}
float one(uint i) { return apply(element_of(x, i)); }
#include "lib/wide.glsl"
