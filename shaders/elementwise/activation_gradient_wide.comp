//! variant f32 T4=vec4 OUT=float OUT4=vec4 FOURS=1
//! variant f16 T4=f16vec4 OUT=float16_t OUT4=f16vec4 FOURS=2 needs=storage16
// activation_gradient.comp with 16 bytes an invocation.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require  // to index f16vec4; no arithmetic
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/tile.glsl"
#include "lib/activation_gradient.glsl"
#include "activation_gradient.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint activation = VITRINE_ACTIVATION_GELU;
layout(constant_id = 2) const bool whole_runs = false;

layout(push_constant) uniform Push { ActivationGradientParams p; };
layout(set = 0, binding = 0) readonly buffer Dy { T4 dy[]; };
layout(set = 0, binding = 1) readonly buffer X { T4 x[]; };
layout(set = 0, binding = 2) writeonly buffer Dx { OUT4 y[]; };

float slope(float value) { return activation_gradient(activation, value); }

vec4 four(uint first, uint f) {
  const vec4 v = vec4(x[first + f]);
  return vec4(dy[first + f]) * vec4(slope(v.x), slope(v.y), slope(v.z), slope(v.w));
}
float one(uint i) { return element_of(dy, i) * slope(element_of(x, i)); }
#include "lib/wide.glsl"
