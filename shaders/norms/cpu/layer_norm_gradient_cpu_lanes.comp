//! variant f32 LOAD_X=load_quad_f32 LOAD_Y=load_quad_f32 STORE_X=store_quad_f32 needs=addresses,int64 bind=addresses access=rrrrwww
//! variant f32_f16 LOAD_X=load_quad_f32 LOAD_Y=load_quad_f16 STORE_X=store_quad_f32 needs=addresses,int64 bind=addresses access=rrrrwww
//! variant f16 LOAD_X=load_quad_f16 LOAD_Y=load_quad_f16 STORE_X=store_quad_f16 needs=addresses,int64 bind=addresses access=rrrrwww
//! variant f16_f32 LOAD_X=load_quad_f16 LOAD_Y=load_quad_f32 STORE_X=store_quad_f16 needs=addresses,int64 bind=addresses access=rrrrwww
// layer_norm_gradient.comp for devices that run a workgroup on a CPU core: one lane takes one row, as in
// layer_norm_cpu_lanes.comp, which says why. A workgroup takes some rows one after the other and then, while they are
// at hand, adds up the parameters' gradients over them. Sums go by blocks of 16 elements.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/nonfinite.glsl"
#include "lib/quads.glsl"
#include "norms/layer_norm.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 8;
layout(constant_id = 1) const uint width = 768;
layout(constant_id = 2) const bool sum_parameters = false;
layout(constant_id = 3) const uint rows_each = 8;  // of a workgroup; a multiple of its size
layout(constant_id = 4) const bool has_residual = false;
layout(constant_id = 5) const bool rms = false;

layout(push_constant) uniform Push {
  InWords dy;
  InWords x;
  Floats gamma;
  InWords residual;
  OutWords dx;
  OutFloats dgamma;  // a row for each workgroup
  OutFloats dbeta;
  LayerNormParams p;
};

const uint row_quads = width / 4;
const uint block = 4;  // quads
const uint whole_blocks = row_quads / block;

shared vec2 statistics[rows_each];  // mean, 1 / deviation

float sum_of(vec4 v) { return (v.x + v.y) + (v.z + v.w); }

vec4 gradient_at(uint base, uint q) {
  const uint column = 4 * q;
  return LOAD_Y(dy, base + q) *
         vec4(gamma.at[column], gamma.at[column + 1], gamma.at[column + 2], gamma.at[column + 3]);
}

vec4 residual_at(uint at) { return has_residual ? LOAD_X(residual, at) : vec4(0.0); }

// A sum over the row, by blocks.
#define SUM(TYPE, RESULT, TERM)                                                    \
  TYPE RESULT = TYPE(0.0);                                                         \
  [[dont_unroll]] for (uint b = 0; b < whole_blocks; ++b) {                        \
    TYPE partial = TYPE(0.0);                                                      \
    [[unroll]] for (uint i = 0; i < block; ++i) partial += TERM(b * block + i);    \
    RESULT += partial;                                                             \
  }                                                                                \
  [[unroll]] for (uint q = whole_blocks * block; q < row_quads; ++q) RESULT += TERM(q)

// Returns the row's statistics.
vec2 write_row(uint row) {
  const uint base = row * row_quads;

#define VALUE(q) sum_of(LOAD_X(x, base + (q)))
  float mean = 0.0;
  if (!rms) {
    SUM(float, sum, VALUE);
    mean = sum / float(width);
  }

#define SQUARE(q) dot(LOAD_X(x, base + (q)) - mean, LOAD_X(x, base + (q)) - mean)
  SUM(float, squares, SQUARE);
  const float inverse_deviation = nan_or(squares, inversesqrt(squares / float(width) + p.eps));

#define TERMS(q)                         \
  vec2(sum_of(gradient_at(base, (q))),   \
       dot(gradient_at(base, (q)), (LOAD_X(x, base + (q)) - mean) * inverse_deviation))
  SUM(vec2, sums, TERMS);
  sums /= float(width);
  if (rms) sums.x = 0.0;

#define WRITE(q)                                                                              \
  STORE_X(dx, base + (q),                                                                     \
          residual_at(base + (q)) +                                                           \
          inverse_deviation * (gradient_at(base, (q)) - sums.x -                              \
                               (LOAD_X(x, base + (q)) - mean) * inverse_deviation * sums.y))
  [[dont_unroll]] for (uint b = 0; b < whole_blocks; ++b) {
    [[unroll]] for (uint i = 0; i < block; ++i) WRITE(b * block + i);
  }
  [[unroll]] for (uint q = whole_blocks * block; q < row_quads; ++q) WRITE(q);
  return vec2(mean, inverse_deviation);
}

// Now a lane takes four columns. Where there are fewer of these than lanes, each takes every slices-th row, and
// the lanes of the first slice add the others' sums.
const uint slices = row_quads < local_size ? local_size / row_quads : 1;
const uint block_rows = 16;

struct Sums {
  vec4 gamma, beta;
};
shared Sums slice_sums[local_size];

void add_row(uint first, uint i, uint q, inout Sums sums) {
  const uint at = (first + i) * row_quads + q;
  const vec2 mean_and_inverse = statistics[i];
  const vec4 gradient = LOAD_Y(dy, at);
  sums.gamma += gradient * ((LOAD_X(x, at) - mean_and_inverse.x) * mean_and_inverse.y);
  sums.beta += gradient;
}

Sums sum_rows(uint first, uint count, uint slice, uint q) {
  Sums sums = Sums(vec4(0.0), vec4(0.0));
  for (uint from = 0; from < count; from += block_rows * slices) {
    Sums partial = Sums(vec4(0.0), vec4(0.0));
    if (from + block_rows * slices <= count) {
      [[unroll]] for (uint i = 0; i < block_rows; ++i) add_row(first, from + i * slices + slice, q, partial);
    } else {
      for (uint i = from + slice; i < count; i += slices) add_row(first, i, q, partial);
    }
    sums.gamma += partial.gamma;
    sums.beta += partial.beta;
  }
  return sums;
}

void write_sums(uint q, Sums sums) {
  const uint at = gl_WorkGroupID.x * width + 4 * q;
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    dgamma.at[at + i] = sums.gamma[i];
    dbeta.at[at + i] = sums.beta[i];
  }
}

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const uint first = gl_WorkGroupID.x * rows_each;
  for (uint i = 0; i < rows_each; i += local_size) {
    if (first + i + lane < p.rows) {
      const vec2 found = write_row(first + i + lane);
      if (sum_parameters) statistics[i + lane] = found;
    }
  }
  if (!sum_parameters) return;
  barrier();

  const uint count = min(rows_each, p.rows - first);
  const uint slice = lane / row_quads;
  if (slices == 1) {
    for (uint q = lane; q < row_quads; q += local_size) write_sums(q, sum_rows(first, count, 0, q));
    return;
  }
  if (slice < slices) slice_sums[lane] = sum_rows(first, count, slice, lane % row_quads);
  barrier();
  if (slice > 0) return;
  Sums sums = slice_sums[lane];
  for (uint i = 1; i < slices; ++i) {
    sums.gamma += slice_sums[i * row_quads + lane].gamma;
    sums.beta += slice_sums[i * row_quads + lane].beta;
  }
  write_sums(lane, sums);
}
