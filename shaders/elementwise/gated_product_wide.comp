//! variant f32 T4=vec4 OUT=float OUT4=vec4 FOURS=1
//! variant f16 T4=f16vec4 OUT=float16_t OUT4=f16vec4 FOURS=2 needs=storage16
// gated_product.comp with 16 bytes an invocation, of which no row has a rest.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require  // to index f16vec4; no arithmetic
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/activation.glsl"
#include "gated_product.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint activation = VITRINE_ACTIVATION_SILU;
layout(constant_id = 2) const uint width = 4096;

layout(push_constant) uniform Push { GatedProductParams p; };
layout(set = 0, binding = 0) readonly buffer X { T4 x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { OUT4 y[]; };

vec4 four(uint first, uint f) {
  const uint row_fours = width / 4;
  const uint at = first + first / row_fours * row_fours + f;  // row * 2 row_fours + column
  const vec4 gate = vec4(x[at]);
  return vec4(activate(activation, gate.x), activate(activation, gate.y), activate(activation, gate.z),
              activate(activation, gate.w)) *
         vec4(x[at + row_fours]);
}
#define WHOLE_RUNS true
#include "lib/wide.glsl"
