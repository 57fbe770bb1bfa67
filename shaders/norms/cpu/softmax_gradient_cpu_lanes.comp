//! variant f32 LOAD=load_quad_f32 STORE=store_quad_f32 needs=addresses,int64 bind=addresses access=rrw
//! variant f16 LOAD=load_quad_f16 STORE=store_quad_f16 needs=addresses,int64 bind=addresses access=rrw
// The gradient of a softmax for devices that run a workgroup on a CPU core: one lane takes one row. The width is
// a constant, a multiple of four, as in layer_norm_cpu_lanes.comp. Sums go by blocks of 16 elements.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/quads.glsl"
#include "norms/softmax.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint width = 768;

layout(push_constant) uniform Push {
  InWords dy;
  InWords y;
  OutWords dx;
  SoftmaxParams p;
};

const uint row_quads = width / 4;
const uint block = 4;  // quads
const uint whole_blocks = row_quads / block;

float dot_of(uint quad) { return dot(LOAD(dy, quad), LOAD(y, quad)); }

void write(uint quad, float sum) { STORE(dx, quad, LOAD(y, quad) * (LOAD(dy, quad) - sum)); }

void main() {
  const uint row = gl_GlobalInvocationID.x;
  if (row >= p.rows) return;
  const uint base = row * row_quads;

  float sum = 0.0;
  [[dont_unroll]] for (uint b = 0; b < whole_blocks; ++b) {
    float partial = 0.0;
    [[unroll]] for (uint i = 0; i < block; ++i) partial += dot_of(base + b * block + i);
    sum += partial;
  }
  [[unroll]] for (uint q = whole_blocks * block; q < row_quads; ++q) sum += dot_of(base + q);

  [[dont_unroll]] for (uint b = 0; b < whole_blocks; ++b) {
    [[unroll]] for (uint i = 0; i < block; ++i) write(base + b * block + i, sum);
  }
  [[unroll]] for (uint q = whole_blocks * block; q < row_quads; ++q) write(base + q, sum);
}
