//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
// One workgroup takes one row: its maximum, then the sum of exp(x - maximum), then the quotients. A NaN
// or +inf in a row makes a distance x - maximum NaN, so their sum and with it the whole row; so does -inf alone.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "softmax.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 128;
#include "lib/reduce.glsl"

layout(push_constant) uniform Push { SoftmaxParams p; };
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { T y[]; };

void main() {
  const uint row = linear_group();
  if (row >= p.rows) return;
  const uint base = row * p.width;
  const uint lane = gl_LocalInvocationID.x;

  float highest = uintBitsToFloat(0xff800000u);  // -inf
  for (uint i = lane; i < p.width; i += local_size) highest = max(highest, load_float(x[base + i]));
  highest = max_over_group(highest);

  float sum = 0.0, distances = 0.0;
  for (uint i = lane; i < p.width; i += local_size) {
    const float distance = load_float(x[base + i]) - highest;
    sum += exp(distance);
    distances += distance;
  }
  sum = sum_over_group(nan_or(distances, sum));

  // Each invocation writes the elements that it alone has read last: x and y may be the same memory.
  for (uint i = lane; i < p.width; i += local_size) {
    y[base + i] = store_as(T, exp(load_float(x[base + i]) - highest) / sum);
  }
}
