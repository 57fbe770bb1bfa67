//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
// One invocation an element of the result. The width is a specialization constant: dividing by it
// becomes a multiplication.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/activation.glsl"
#include "gated_product.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint activation = VITRINE_ACTIVATION_SILU;
layout(constant_id = 2) const uint width = 4096;

layout(push_constant) uniform Push { GatedProductParams p; };
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { T y[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint gate = i + i / width * width;  // row * 2 width + column
  y[i] = store_as(T, activate(activation, load_float(x[gate])) * load_float(x[gate + width]));
}
