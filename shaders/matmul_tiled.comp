//! variant f32 IN4=vec4 OUT=float
//! variant f16 IN4=f16vec4 OUT=float16_t needs=storage16
//! variant f16_f32 IN4=f16vec4 OUT=float needs=storage16
// C = epilogue(A W^T) with tiles in shared memory, for GPUs.
//
//   grid        tiles of tile_m x tile_n outputs; neighbours share the columns, so W's rows stay in the cache
//   workgroup   walks K in steps of 4 * step_k4; a step of A [tile_m][step_k4] and W [tile_n][step_k4] lies
//               in shared memory as vec4 (f32 whatever the storage type), padded by one so that rows fall
//               into different banks
//   invocation  thread_m x thread_n outputs, rows and columns interleaved across the workgroup: row
//               r + i * threads_m, column c + j * threads_n; neighbouring lanes differ in the column, so
//               their stores are contiguous and their reads of A are broadcasts
//   overlap     the next step's global loads are issued before the current step is multiplied
//
// Rows past the edge are clamped to the last one (computed, never stored); K past the edge is zero in both
// operands, so that no stray NaN enters a sum.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require  // to index f16vec4; no arithmetic
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "matmul.h"

layout(push_constant) uniform Push { MatmulParams p; };
layout(set = 0, binding = 0) readonly buffer A { IN4 a[]; };
layout(set = 0, binding = 1) readonly buffer W { IN4 w[]; };
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3) readonly buffer Scale { float scale[]; };
layout(set = 0, binding = 4) readonly buffer Residual { float residual[]; };
layout(set = 0, binding = 5) writeonly buffer C { OUT c[]; };

#define EPILOGUE_BIAS(column) bias[column]
#define EPILOGUE_SCALE(column) scale[column]
#define EPILOGUE_RESIDUAL(at) residual[at]
#include "lib/epilogue.glsl"
#include "lib/tile.glsl"

layout(local_size_x_id = 4) in;  // threads_m * threads_n
layout(constant_id = 5) const uint tile_m = 64;
layout(constant_id = 6) const uint tile_n = 64;
layout(constant_id = 7) const uint step_k4 = 4;
layout(constant_id = 8) const uint thread_m = 4;
layout(constant_id = 9) const uint thread_n = 4;
layout(constant_id = 10) const bool aligned = false;  // K is a multiple of 4

const uint threads_m = tile_m / thread_m;
const uint threads_n = tile_n / thread_n;
const uint threads = threads_m * threads_n;
const uint stride = step_k4 + 1;
const uint loads_a = (tile_m * step_k4 + threads - 1) / threads;
const uint loads_w = (tile_n * step_k4 + threads - 1) / threads;

shared vec4 tile_of_a[tile_m * stride];
shared vec4 tile_of_w[tile_n * stride];

#define FETCH(NAME, BUFFER, ROWS)                                         \
  vec4 NAME(uint row, uint k) {                                           \
    const uint at = min(row, ROWS - 1) * p.k + k;                         \
    if (aligned) return k < p.k ? vec4(BUFFER[at >> 2]) : vec4(0.0);      \
    return vec4(k < p.k ? element_of(BUFFER, at) : 0.0,                   \
                k + 1 < p.k ? element_of(BUFFER, at + 1) : 0.0,           \
                k + 2 < p.k ? element_of(BUFFER, at + 2) : 0.0,           \
                k + 3 < p.k ? element_of(BUFFER, at + 3) : 0.0);          \
  }
FETCH(fetch_a, a, p.m)
FETCH(fetch_w, w, p.n)

void main() {
  const uint tile = linear_group();
  if (tile >= p.tiles) return;
  const uint first_row = (tile % p.tiles_m) * tile_m;
  const uint first_column = (tile / p.tiles_m) * tile_n;
  const uint thread = gl_LocalInvocationIndex;
  const uint thread_row = thread / threads_n;
  const uint thread_column = thread % threads_n;

  vec4 next_a[loads_a];
  vec4 next_w[loads_w];
  float sums[thread_m * thread_n];
  [[unroll]] for (uint i = 0; i < thread_m * thread_n; ++i) sums[i] = 0.0;

  [[unroll]] for (uint i = 0; i < loads_a; ++i) {
    const uint e = thread + i * threads;
    next_a[i] = fetch_a(first_row + e / step_k4, (e % step_k4) * 4);
  }
  [[unroll]] for (uint i = 0; i < loads_w; ++i) {
    const uint e = thread + i * threads;
    next_w[i] = fetch_w(first_column + e / step_k4, (e % step_k4) * 4);
  }

  [[dont_unroll]] for (uint k = 0; k < p.k; k += 4 * step_k4) {
    [[unroll]] for (uint i = 0; i < loads_a; ++i) {
      const uint e = thread + i * threads;
      if (e < tile_m * step_k4) tile_of_a[e / step_k4 * stride + e % step_k4] = next_a[i];
    }
    [[unroll]] for (uint i = 0; i < loads_w; ++i) {
      const uint e = thread + i * threads;
      if (e < tile_n * step_k4) tile_of_w[e / step_k4 * stride + e % step_k4] = next_w[i];
    }
    barrier();

    const uint next_k = k + 4 * step_k4;
    if (next_k < p.k) {
      [[unroll]] for (uint i = 0; i < loads_a; ++i) {
        const uint e = thread + i * threads;
        next_a[i] = fetch_a(first_row + e / step_k4, next_k + (e % step_k4) * 4);
      }
      [[unroll]] for (uint i = 0; i < loads_w; ++i) {
        const uint e = thread + i * threads;
        next_w[i] = fetch_w(first_column + e / step_k4, next_k + (e % step_k4) * 4);
      }
    }

    [[unroll]] for (uint k4 = 0; k4 < step_k4; ++k4) {
      vec4 rows[thread_m];
      [[unroll]] for (uint i = 0; i < thread_m; ++i) {
        rows[i] = tile_of_a[(thread_row + i * threads_m) * stride + k4];
      }
      [[unroll]] for (uint j = 0; j < thread_n; ++j) {
        const vec4 column = tile_of_w[(thread_column + j * threads_n) * stride + k4];
        [[unroll]] for (uint i = 0; i < thread_m; ++i) {
          sums[i * thread_n + j] = multiply_add(rows[i], column, sums[i * thread_n + j]);
        }
      }
    }
    barrier();
  }

  // One row at a time, picked by comparing so that the array is only ever indexed by constants, while the
  // epilogue's code exists thread_n times and not thread_m * thread_n.
  [[dont_unroll]] for (uint s = 0; s < thread_m; ++s) {
    float picked[thread_n];
    [[unroll]] for (uint i = 0; i < thread_m; ++i) {
      [[unroll]] for (uint j = 0; j < thread_n; ++j) {
        if (i == 0 || i == s) picked[j] = sums[i * thread_n + j];
      }
    }
    const uint row = first_row + thread_row + s * threads_m;
    if (row >= p.m) break;
    [[unroll]] for (uint j = 0; j < thread_n; ++j) {
      const uint column = first_column + thread_column + j * threads_n;
      if (column < p.n) {
        const uint at = row * p.n + column;
        c[at] = store_as(OUT, epilogue(picked[j], column, at));
      }
    }
  }
}
