//! variant w32 T=uint
//! variant w16 T=uint16_t needs=storage16
// Copies runs of `run` consecutive elements, each run a stride further in source and target: what slice
// and concat come down to. Elements are moved as integers, so that no bit changes. One invocation an
// element; the length of a run is a specialization constant because it is divided by.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "copy_runs.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint run = 768;

layout(push_constant) uniform Push { CopyRunsParams p; };
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { T y[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint number = i / run, place = i % run;
  y[p.to + number * p.to_stride + place] = x[p.from + number * p.from_stride + place];
}
