//! variant f32 T=float ELEMENT_BYTES=4 LOAD=load_quad_f32 needs=addresses,int64 bind=addresses access=rw
//! variant f16 T=float16_t ELEMENT_BYTES=2 LOAD=load_quad_f16 needs=addresses,int64,storage16 bind=addresses access=rw
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/types.glsl"
#include "lib/quads.glsl"
#include "matmul_cpu_direct.h"

// Weights [columns of C, K] into panels [columns / panel][K, padded][panel]. K is padded with zeros; a column
// past the last one is the last one again, as nothing made of it is stored.
//
//   workgroup  group_steps steps of unroll values of K (x) of a panel (y)
//   lane       a column of the panel: reads its values of a step as 64-bit words; no division finds its place
layout(local_size_x_id = 0) in;  // panel
layout(constant_id = 1) const uint panel = 8;
layout(constant_id = 2) const uint unroll = 8;           // a multiple of 4
layout(constant_id = 3) const bool whole_steps = false;  // K is a multiple of unroll

layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer Elements { T v[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) writeonly buffer Panels { T v[]; };
layout(push_constant) uniform Push {
  Elements weights;
  Panels panels;
  MatmulDirectPanelsParams p;
};

void main() {
  const uint column = min(gl_WorkGroupID.y * panel + gl_LocalInvocationID.x, p.columns - 1);
  Elements row = Elements(uint64_t(weights) + uint64_t(ELEMENT_BYTES) * (column * p.depth));
  const uint first = gl_WorkGroupID.x * p.group_steps;
  const uint last = min(first + p.group_steps, p.steps);
  for (uint step = first; step < last; ++step) {
    const uint to = ((gl_WorkGroupID.y * p.steps + step) * unroll) * panel + gl_LocalInvocationID.x;
    [[unroll]] for (uint q = 0; q < unroll / 4; ++q) {
      const uint k = step * unroll + 4 * q;
      if (whole_steps) {
        const vec4 x = LOAD(InWords(row), k / 4);
        [[unroll]] for (uint i = 0; i < 4; ++i) panels.v[to + (4 * q + i) * panel] = store_as(T, x[i]);
      } else {
        [[unroll]] for (uint i = 0; i < 4; ++i) {
          float x = 0.0;
          if (k + i < p.depth) x = load_float(row.v[k + i]);
          panels.v[to + (4 * q + i) * panel] = store_as(T, x);
        }
      }
    }
  }
}
