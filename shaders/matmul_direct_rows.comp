//! variant f32 T=float ELEMENT_BYTES=4 needs=addresses,int64 bind=addresses access=rw
//! variant f16 T=float16_t ELEMENT_BYTES=2 needs=addresses,int64,storage16 bind=addresses access=rw
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "lib/types.glsl"
#include "matmul_direct.h"

// Rows of A into blocks [rows / block_rows][steps of K][block_rows][unroll] of f32, zeros around: what a
// workgroup of matmul_direct.comp reads in one step lies side by side. Read where they are, rows whose
// length is a multiple of a cache way's would push each other out of the cache.
//
//   invocation  one step of one row
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint block_rows = 8;
layout(constant_id = 2) const uint unroll = 8;

layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer Rows { T v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Blocks { float v[]; };
layout(push_constant) uniform Push {
  Rows rows;
  Blocks blocks;
  MatmulDirectPackParams p;
};

void main() {
  const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  const uint count = p.count / unroll;
  for (uint at = gl_GlobalInvocationID.x; at < count; at += stride) {
    const uint row = at / p.steps, step = at % p.steps;
    const uint k = step * unroll;
    Rows from = Rows(uint64_t(rows) + uint64_t(ELEMENT_BYTES) * (row * p.depth + k));
    Blocks to = Blocks(uint64_t(blocks) +
                       4ul * unroll * ((row / block_rows * p.steps + step) * block_rows + row % block_rows));
    if (row >= p.rows) {
      [[unroll]] for (uint u = 0; u < unroll; ++u) to.v[u] = 0.0;
    } else if (k + unroll <= p.depth) {
      [[unroll]] for (uint u = 0; u < unroll; ++u) to.v[u] = load_float(from.v[u]);
    } else {
      [[unroll]] for (uint u = 0; u < unroll; ++u) to.v[u] = k + u < p.depth ? load_float(from.v[u]) : 0.0;
    }
  }
}
