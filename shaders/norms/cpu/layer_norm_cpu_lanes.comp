//! variant f32 LOAD=load_quad_f32 STORE=store_quad_f32 needs=addresses,int64 bind=addresses access=rrrw
//! variant f32_f16 LOAD=load_quad_f32 STORE=store_quad_f16 needs=addresses,int64 bind=addresses access=rrrw
//! variant f16 LOAD=load_quad_f16 STORE=store_quad_f16 needs=addresses,int64 bind=addresses access=rrrw
//! variant f16_f32 LOAD=load_quad_f16 STORE=store_quad_f32 needs=addresses,int64 bind=addresses access=rrrw
// Layer normalization for devices that run a workgroup on a CPU core: one lane takes one row, so there is
// nothing to reduce between lanes, and gamma and beta are read at the same address by all of them, which
// is nearly free. The width is a constant, and so is each loop's number of turns (see matmul_cpu_direct.comp for
// what happens else); it is a multiple of four. Sums go by blocks of 16 elements.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/nonfinite.glsl"
#include "lib/types.glsl"
#include "lib/quads.glsl"
#include "norms/layer_norm.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint width = 768;
// Where the result is the left side of a product: the blocks of matmul_cpu_direct.comp. 0 rows: no blocks.
layout(constant_id = 2) const uint block_rows = 0;
layout(constant_id = 3) const uint unroll = 16;
layout(constant_id = 4) const bool halves = false;  // blocks hold f32, of what f16 would hold
layout(constant_id = 5) const bool rms = false;     // no mean is taken off, and nothing added

layout(push_constant) uniform Push {
  InWords x;
  Floats gamma;
  Floats beta;
  OutWords y;
  LayerNormParams p;
};

const uint row_quads = width / 4;
const uint block = 4;  // quads
const uint whole_blocks = row_quads / block;

float sum_of(vec4 v) { return (v.x + v.y) + (v.z + v.w); }

float square_distance(uint quad, float mean) {
  const vec4 distance = LOAD(x, quad) - mean;
  return sum_of(distance * distance);
}

// Where the q-th quad of a row goes.
uint target(uint row, uint q) {
  if (block_rows == 0) return row * row_quads + q;
  const uint steps = width / unroll, step_quads = unroll / 4;
  return ((row / block_rows * steps + q / step_quads) * block_rows + row % block_rows) * step_quads + q % step_quads;
}

void write(uint row, uint q, float mean, float inverse_deviation) {
  const uint column = 4 * q;
  const vec4 scale = vec4(gamma.at[column], gamma.at[column + 1], gamma.at[column + 2], gamma.at[column + 3]);
  const vec4 shift =
      rms ? vec4(0.0) : vec4(beta.at[column], beta.at[column + 1], beta.at[column + 2], beta.at[column + 3]);
  const vec4 distance = LOAD(x, row * row_quads + q) - mean;
  vec4 normalized = distance * inverse_deviation * scale + shift;
  if (halves) {
    [[unroll]] for (uint i = 0; i < 4; ++i) normalized[i] = rounded_to_half(normalized[i]);
  }
  STORE(y, target(row, q), normalized);
}

void main() {
  const uint row = gl_GlobalInvocationID.x;
  if (row >= p.rows) return;
  const uint base = row * row_quads;

  float mean = 0.0;
  if (!rms) {
    float sum = 0.0;
    [[dont_unroll]] for (uint b = 0; b < whole_blocks; ++b) {
      float partial = 0.0;
      [[unroll]] for (uint i = 0; i < block; ++i) partial += sum_of(LOAD(x, base + b * block + i));
      sum += partial;
    }
    [[unroll]] for (uint q = whole_blocks * block; q < row_quads; ++q) sum += sum_of(LOAD(x, base + q));
    mean = sum / float(width);
  }

  float squares = 0.0;
  [[dont_unroll]] for (uint b = 0; b < whole_blocks; ++b) {
    float partial = 0.0;
    [[unroll]] for (uint i = 0; i < block; ++i) partial += square_distance(base + b * block + i, mean);
    squares += partial;
  }
  [[unroll]] for (uint q = whole_blocks * block; q < row_quads; ++q) squares += square_distance(base + q, mean);
  const float inverse_deviation = nan_or(squares, inversesqrt(squares / float(width) + p.eps));

  [[dont_unroll]] for (uint b = 0; b < whole_blocks; ++b) {
    [[unroll]] for (uint i = 0; i < block; ++i) write(row, b * block + i, mean, inverse_deviation);
  }
  [[unroll]] for (uint q = whole_blocks * block; q < row_quads; ++q) write(row, q, mean, inverse_deviation);
}
