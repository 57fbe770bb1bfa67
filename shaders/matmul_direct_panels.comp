//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "matmul_direct.h"

// Weights [columns of C, K] into panels [columns / panel][K, padded][panel], zeros around.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint panel = 8;
layout(constant_id = 2) const uint unroll = 8;

layout(push_constant) uniform Push { MatmulDirectPackParams p; };
layout(set = 0, binding = 0) readonly buffer Weights { T weights[]; };
layout(set = 0, binding = 1) writeonly buffer Panels { T panels[]; };

void main() {
  const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  for (uint at = gl_GlobalInvocationID.x; at < p.count; at += stride) {
    const uint k = at / panel % (p.steps * unroll);
    const uint row = at / panel / (p.steps * unroll) * panel + at % panel;
    panels[at] = store_as(T, row < p.rows && k < p.depth ? load_float(weights[row * p.depth + k]) : 0.0);
  }
}
