//! variant f32 LOAD=load_quad_f32 STORE=store_quad_f32 needs=addresses,int64 bind=addresses access=rw
//! variant f16 LOAD=load_quad_f16 STORE=store_quad_f16 needs=addresses,int64 bind=addresses access=rw
// Softmax for devices that run a workgroup on a CPU core: one lane takes one row, so there is nothing to
// reduce between lanes. The width is a constant, a multiple of four, as in layer_norm_lanes.comp; what
// NaN and infinities become, is said in softmax.comp.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/quads.glsl"
#include "softmax.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint width = 768;

layout(push_constant) uniform Push {
  InWords x;
  OutWords y;
  SoftmaxParams p;
};

const uint row_quads = width / 4;
const uint block = 4;  // quads
const uint whole_blocks = row_quads / block;

vec4 exponentials(uint quad, float highest) { return exp(LOAD(x, quad) - highest); }

float sum_of(vec4 v) { return (v.x + v.y) + (v.z + v.w); }

void main() {
  const uint row = gl_GlobalInvocationID.x;
  if (row >= p.rows) return;
  const uint base = row * row_quads;

  vec4 high = vec4(uintBitsToFloat(0xff800000u));  // -inf
  [[dont_unroll]] for (uint b = 0; b < whole_blocks; ++b) {
    [[unroll]] for (uint i = 0; i < block; ++i) high = max(high, LOAD(x, base + b * block + i));
  }
  [[unroll]] for (uint q = whole_blocks * block; q < row_quads; ++q) high = max(high, LOAD(x, base + q));
  const float highest = max(max(high.x, high.y), max(high.z, high.w));

  float sum = 0.0;
  [[dont_unroll]] for (uint b = 0; b < whole_blocks; ++b) {
    float partial = 0.0;
    [[unroll]] for (uint i = 0; i < block; ++i) partial += sum_of(exponentials(base + b * block + i, highest));
    sum += partial;
  }
  [[unroll]] for (uint q = whole_blocks * block; q < row_quads; ++q) sum += sum_of(exponentials(base + q, highest));

  const float factor = 1.0 / sum;
  [[dont_unroll]] for (uint b = 0; b < whole_blocks; ++b) {
    [[unroll]] for (uint i = 0; i < block; ++i) {
      const uint q = base + b * block + i;
      STORE(y, q, exponentials(q, highest) * factor);
    }
  }
  [[unroll]] for (uint q = whole_blocks * block; q < row_quads; ++q) STORE(y, base + q, exponentials(base + q, highest) * factor);
}
