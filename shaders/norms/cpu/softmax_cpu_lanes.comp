//! variant f32 LOAD=load_quad_f32 STORE=store_quad_f32 needs=addresses,int64 bind=addresses access=rw
//! variant f16 LOAD=load_quad_f16 STORE=store_quad_f16 needs=addresses,int64 bind=addresses access=rw
// Softmax for devices that run a workgroup on a CPU core: one lane takes one row, so there is nothing to
// reduce between lanes. The width is a constant, a multiple of four, as in layer_norm_cpu_lanes.comp; what
// NaN and infinities become, is said in softmax.comp.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/nonfinite.glsl"
#include "lib/quads.glsl"
#include "norms/softmax.h"
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

float sum_of(vec4 v) { return (v.x + v.y) + (v.z + v.w); }

vec4 distances = vec4(0.0);  // NaN where one is

void add(uint quad, float highest, inout float sum) {
  const vec4 distance = LOAD(x, quad) - highest;
  sum += sum_of(exp(distance));
  distances += distance;
}

void write(uint quad, float highest, float factor) { STORE(y, quad, exp(LOAD(x, quad) - highest) * factor); }

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
    [[unroll]] for (uint i = 0; i < block; ++i) add(base + b * block + i, highest, partial);
    sum += partial;
  }
  [[unroll]] for (uint q = whole_blocks * block; q < row_quads; ++q) add(base + q, highest, sum);

  const float factor = 1.0 / nan_or(sum_of(distances), sum);
  [[dont_unroll]] for (uint b = 0; b < whole_blocks; ++b) {
    [[unroll]] for (uint i = 0; i < block; ++i) write(base + b * block + i, highest, factor);
  }
  [[unroll]] for (uint q = whole_blocks * block; q < row_quads; ++q) write(base + q, highest, factor);
}
