//! variant w32 T=uint
//! variant w16 T=uint16_t needs=storage16
// Runs of consecutive elements, each set into a longer run of zeros. Elements are moved as integers, so that
// no bit changes. One invocation an element of the result.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "pad.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint run = 768;      // elements of x that follow each other
layout(constant_id = 2) const uint longer = 1536;  // and how many they become

layout(push_constant) uniform Push { PadParams p; };
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { T y[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint place = i % longer - p.begin;  // wraps around in front of x, and is too large there, too
  uint value = 0;
  if (place < run) value = uint(x[i / longer * run + place]);
  y[i] = T(value);
}
