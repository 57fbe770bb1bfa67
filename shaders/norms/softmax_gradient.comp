//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
// One workgroup takes one row: the sum of dy y, then y (dy - sum).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "softmax.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 128;
#include "lib/reduce.glsl"

layout(push_constant) uniform Push { SoftmaxParams p; };
layout(set = 0, binding = 0) readonly buffer Dy { T dy[]; };
layout(set = 0, binding = 1) readonly buffer Y { T y[]; };
layout(set = 0, binding = 2) writeonly buffer Dx { T dx[]; };

void main() {
  const uint row = linear_group();
  if (row >= p.rows) return;
  const uint base = row * p.width;
  const uint lane = gl_LocalInvocationID.x;

  float sum = 0.0;
  for (uint i = lane; i < p.width; i += local_size) sum += load_float(dy[base + i]) * load_float(y[base + i]);
  sum = sum_over_group(sum);

  // Each invocation writes the elements that it alone has read last: dx may be the memory of dy or y.
  for (uint i = lane; i < p.width; i += local_size) {
    dx[base + i] = store_as(T, load_float(y[base + i]) * (load_float(dy[base + i]) - sum));
  }
}
