//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
// One invocation an element. The function is a specialization constant: one of lib/activation.h's
// numbers, or VITRINE_UNARY_SCALE.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/activation.glsl"
#include "unary.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint function = VITRINE_ACTIVATION_GELU;

layout(push_constant) uniform Push { UnaryParams p; };
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { T y[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const float value = load_float(x[i]);
  y[i] = store_as(T, function == VITRINE_UNARY_SCALE ? value * p.factor : activate(function, value));
}
