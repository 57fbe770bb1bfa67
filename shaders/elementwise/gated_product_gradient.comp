//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
// One invocation an element of dy: it writes the gradients of the two elements of x that the product is made of.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/activation_gradient.glsl"
#include "gated_product.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint activation = VITRINE_ACTIVATION_SILU;
layout(constant_id = 2) const uint width = 4096;

layout(push_constant) uniform Push { GatedProductParams p; };
layout(set = 0, binding = 0) readonly buffer Dy { T dy[]; };
layout(set = 0, binding = 1) readonly buffer X { T x[]; };
layout(set = 0, binding = 2) writeonly buffer Dx { T dx[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint at = i + i / width * width;  // row * 2 width + column
  const float gradient = load_float(dy[i]), gate = load_float(x[at]), value = load_float(x[at + width]);
  dx[at] = store_as(T, gradient * value * activation_gradient(activation, gate));
  dx[at + width] = store_as(T, gradient * activate(activation, gate));
}
