//! variant f32 T4=vec4 OUT=float OUT4=vec4 FOURS=1
//! variant f16 T4=f16vec4 OUT=float16_t OUT4=f16vec4 FOURS=2 needs=storage16
// gated_product_gradient.comp with 16 bytes an invocation, of which no row has a rest.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require  // to index f16vec4; no arithmetic
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/activation_gradient.glsl"
#include "gated_product.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint activation = VITRINE_ACTIVATION_SILU;
layout(constant_id = 2) const uint width = 4096;

layout(push_constant) uniform Push { GatedProductParams p; };
layout(set = 0, binding = 0) readonly buffer Dy { T4 dy[]; };
layout(set = 0, binding = 1) readonly buffer X { T4 x[]; };
layout(set = 0, binding = 2) writeonly buffer Dx { OUT4 dx[]; };

vec4 of_gates(vec4 gate) {
  return vec4(activate(activation, gate.x), activate(activation, gate.y), activate(activation, gate.z),
              activate(activation, gate.w));
}
vec4 slopes(vec4 gate) {
  return vec4(activation_gradient(activation, gate.x), activation_gradient(activation, gate.y),
              activation_gradient(activation, gate.z), activation_gradient(activation, gate.w));
}

void main() {
  const uint row_fours = width / 4;
  const uint first = linear_invocation() * FOURS;
  if (4 * first >= p.count) return;
  const uint at = first + first / row_fours * row_fours;  // row * 2 row_fours + column
  vec4 gradients[FOURS], gates[FOURS], values[FOURS];
  [[unroll]] for (uint f = 0; f < FOURS; ++f) gradients[f] = vec4(dy[first + f]);
  [[unroll]] for (uint f = 0; f < FOURS; ++f) gates[f] = vec4(x[at + f]);
  [[unroll]] for (uint f = 0; f < FOURS; ++f) values[f] = vec4(x[at + row_fours + f]);
  [[unroll]] for (uint f = 0; f < FOURS; ++f) dx[at + f] = OUT4(gradients[f] * values[f] * slopes(gates[f]));
  [[unroll]] for (uint f = 0; f < FOURS; ++f) dx[at + row_fours + f] = OUT4(gradients[f] * of_gates(gates[f]));
}
