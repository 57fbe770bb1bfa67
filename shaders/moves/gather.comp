//! variant w32 T=uint ALL_BITS=0xffffffffu
//! variant w16 T=uint16_t ALL_BITS=0xffffu needs=storage16
// One workgroup copies one row. Elements are moved as integers, so that no bit changes.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "gather.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 128;

layout(push_constant) uniform Push { GatherParams p; };
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) readonly buffer Rows { uint rows[]; };
layout(set = 0, binding = 2) writeonly buffer Y { T y[]; };

void main() {
  const uint row = linear_group();
  if (row >= p.rows) return;
  const uint number = rows[row % p.picked];
  const bool exists = number < p.source_rows;
  const uint from = (row / p.picked * p.source_rows + (exists ? number : 0)) * p.width;
  for (uint i = gl_LocalInvocationID.x; i < p.width; i += local_size) {
    y[row * p.width + i] = store_as(T, exists ? uint(x[from + i]) : ALL_BITS);
  }
}
