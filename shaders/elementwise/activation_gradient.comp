//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
// One invocation an element: the gradient behind an activation times the activation's derivative.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/activation_gradient.glsl"
#include "activation_gradient.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint activation = VITRINE_ACTIVATION_GELU;

layout(push_constant) uniform Push { ActivationGradientParams p; };
layout(set = 0, binding = 0) readonly buffer Dy { T dy[]; };
layout(set = 0, binding = 1) readonly buffer X { T x[]; };
layout(set = 0, binding = 2) writeonly buffer Dx { T dx[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  dx[i] = store_as(T, load_float(dy[i]) * activation_gradient(activation, load_float(x[i])));
}
