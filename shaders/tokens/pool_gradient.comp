//! variant f32
// What each token had of the mean of a range of them: its share of the mean's gradient, and nothing where it
// stands outside. One invocation an element of the result.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "pool.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint dims = 768;
layout(constant_id = 2) const uint tokens = 197;

layout(push_constant) uniform Push { PoolParams p; };
layout(set = 0, binding = 0) readonly buffer DY { float dy[]; };
layout(set = 0, binding = 1) writeonly buffer DX { float dx[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint row = i / dims;
  const bool pooled = row % tokens - p.first < p.pooled;  // the difference wraps around in front of the range
  float value = 0.0;
  if (pooled) value = dy[row / tokens * dims + i % dims] / float(p.pooled);
  dx[i] = value;
}
