//! variant f32
// One workgroup takes one row: where its largest element is, the first of equals. A NaN is above all numbers, as
// in PyTorch. Compared as whole numbers that are ordered as the floats are, so no driver has a say in NaNs.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "argmax.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 128;

layout(push_constant) uniform Push { ArgmaxParams p; };
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { uint y[]; };

shared uvec2 best_of[local_size];  // the order, and where

uint order_of(float value) {
  if (is_nan(value)) return 0xffffffffu;
  uint bits = floatBitsToUint(value);
  if (bits == 0x80000000u) bits = 0;  // both zeros are equal
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

uvec2 better(uvec2 a, uvec2 b) { return b.x > a.x || (b.x == a.x && b.y < a.y) ? b : a; }

void main() {
  const uint row = linear_group();
  if (row >= p.rows) return;
  const uint lane = gl_LocalInvocationID.x;
  uvec2 best = uvec2(0, 0xffffffffu);  // below everything, since no number is ordered as 0
  for (uint c = lane; c < p.width; c += local_size) best = better(best, uvec2(order_of(x[row * p.width + c]), c));
  best_of[lane] = best;
  barrier();
  for (uint half_size = local_size / 2; half_size > 0; half_size /= 2) {
    if (lane < half_size) best_of[lane] = better(best_of[lane], best_of[lane + half_size]);
    barrier();
  }
  if (lane == 0) y[row] = best_of[0].y;
}
