//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "matmul_direct.h"

// Weights [columns, depth] into panels [columns / panel][depth][panel] of f32, padded with zeros.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint panel = 64;

layout(push_constant) uniform Push { MatmulDirectPackParams p; };
layout(set = 0, binding = 0) readonly buffer Weights { T weights[]; };
layout(set = 0, binding = 1) writeonly buffer Panels { float panels[]; };

void main() {
  const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  for (uint at = gl_GlobalInvocationID.x; at < p.count; at += stride) {
    const uint lane = at % panel;
    const uint k = at / panel % p.depth;
    const uint column = at / panel / p.depth * panel + lane;
    panels[at] = column < p.columns ? load_float(weights[column * p.depth + k]) : 0.0;
  }
}
