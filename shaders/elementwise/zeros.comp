//! variant f32
// Fills a tensor with zeros, for kernels that write only a part of it.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "zeros.h"
layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { ZerosParams p; };
layout(set = 0, binding = 0) writeonly buffer Y { float y[]; };

void main() {
  const uint i = linear_invocation();
  if (i < p.count) y[i] = 0.0;
}
