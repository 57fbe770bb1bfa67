//! variant f32 LOAD_X=load_quad_f32 LOAD_Y=load_quad_f32 STORE_X=store_quad_f32 needs=addresses,int64 bind=addresses access=rrrww
//! variant f32_f16 LOAD_X=load_quad_f32 LOAD_Y=load_quad_f16 STORE_X=store_quad_f32 needs=addresses,int64 bind=addresses access=rrrww
//! variant f16 LOAD_X=load_quad_f16 LOAD_Y=load_quad_f16 STORE_X=store_quad_f16 needs=addresses,int64 bind=addresses access=rrrww
//! variant f16_f32 LOAD_X=load_quad_f16 LOAD_Y=load_quad_f32 STORE_X=store_quad_f16 needs=addresses,int64 bind=addresses access=rrrww
// layer_norm_gradient.comp for devices that run a workgroup on a CPU core: one lane takes one row, as in
// layer_norm_lanes.comp, which says why. Sums go by blocks of 16 elements.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/quads.glsl"
#include "layer_norm.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint width = 768;
layout(constant_id = 2) const bool keep_statistics = false;

layout(push_constant) uniform Push {
  InWords dy;
  InWords x;
  Floats gamma;
  OutWords dx;
  OutWords statistics;
  LayerNormParams p;
};

const uint row_quads = width / 4;
const uint block = 4;  // quads
const uint whole_blocks = row_quads / block;

float sum_of(vec4 v) { return (v.x + v.y) + (v.z + v.w); }

vec4 gradient_at(uint base, uint q) {
  const uint column = 4 * q;
  return LOAD_Y(dy, base + q) *
         vec4(gamma.at[column], gamma.at[column + 1], gamma.at[column + 2], gamma.at[column + 3]);
}

// A sum over the row, by blocks.
#define SUM(TYPE, RESULT, TERM)                                                    \
  TYPE RESULT = TYPE(0.0);                                                         \
  for (uint b = 0; b < whole_blocks; ++b) {                                        \
    TYPE partial = TYPE(0.0);                                                      \
    [[unroll]] for (uint i = 0; i < block; ++i) partial += TERM(b * block + i);    \
    RESULT += partial;                                                             \
  }                                                                                \
  [[unroll]] for (uint q = whole_blocks * block; q < row_quads; ++q) RESULT += TERM(q)

void main() {
  const uint row = gl_GlobalInvocationID.x;
  if (row >= p.rows) return;
  const uint base = row * row_quads;

#define VALUE(q) sum_of(LOAD_X(x, base + (q)))
  SUM(float, sum, VALUE);
  const float mean = sum / float(width);

#define SQUARE(q) dot(LOAD_X(x, base + (q)) - mean, LOAD_X(x, base + (q)) - mean)
  SUM(float, squares, SQUARE);
  const float inverse_deviation = inversesqrt(squares / float(width) + p.eps);

#define TERMS(q)                         \
  vec2(sum_of(gradient_at(base, (q))),   \
       dot(gradient_at(base, (q)), (LOAD_X(x, base + (q)) - mean) * inverse_deviation))
  SUM(vec2, sums, TERMS);
  sums /= float(width);

#define WRITE(q)                                                                              \
  STORE_X(dx, base + (q),                                                                     \
          inverse_deviation * (gradient_at(base, (q)) - sums.x -                              \
                               (LOAD_X(x, base + (q)) - mean) * inverse_deviation * sums.y))
  for (uint b = 0; b < whole_blocks; ++b) {
    [[unroll]] for (uint i = 0; i < block; ++i) WRITE(b * block + i);
  }
  [[unroll]] for (uint q = whole_blocks * block; q < row_quads; ++q) WRITE(q);
  if (keep_statistics) statistics.at[row] = pack64(floatBitsToUint(vec2(mean, inverse_deviation)));
}
