//! variant f32 T=float ELEMENT_BYTES=4 MOVE=move_quad_f32 needs=addresses,int64 bind=addresses access=rw
//! variant f16 T=float16_t ELEMENT_BYTES=2 MOVE=widen_quad_f16 needs=addresses,int64,storage16 bind=addresses access=rw
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/types.glsl"
#include "lib/quads.glsl"
#include "matmul_cpu_direct.h"

// Rows of A into blocks [rows / block_rows][steps of K][block_rows][unroll] of f32: what a workgroup of
// matmul_cpu_direct.comp reads in one step lies side by side. Read where they are, rows whose length is a
// multiple of a cache way's would push each other out of the cache. K is padded with zeros; a row past
// the last one is the last one again, as nothing made of it is stored.
//
//   invocation  one step of one row
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint block_rows = 8;
layout(constant_id = 2) const uint unroll = 8;         // a multiple of 4
layout(constant_id = 3) const bool whole_steps = false;  // K is a multiple of unroll

layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer Elements { T v[]; };
layout(push_constant) uniform Push {
  Elements rows;
  OutWords blocks;
  MatmulDirectRowsParams p;
};

float element_of(Elements row, uint k) { return k < p.depth ? load_float(row.v[k]) : 0.0; }

void main() {
  const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  const uint count = p.count / unroll;
  for (uint at = gl_GlobalInvocationID.x; at < count; at += stride) {
    const uint row = at / p.steps, step = at % p.steps;
    Elements from = Elements(uint64_t(rows) + uint64_t(ELEMENT_BYTES) * (min(row, p.rows - 1) * p.depth));
    const uint to = ((row / block_rows * p.steps + step) * block_rows + row % block_rows) * (unroll / 4);
    [[unroll]] for (uint q = 0; q < unroll / 4; ++q) {
      const uint k = step * unroll + 4 * q;
      if (whole_steps) {
        MOVE(blocks, to + q, InWords(from), k / 4);
      } else {
        store_quad_f32(blocks, to + q, vec4(element_of(from, k), element_of(from, k + 1), element_of(from, k + 2),
                                            element_of(from, k + 3)));
      }
    }
  }
}
