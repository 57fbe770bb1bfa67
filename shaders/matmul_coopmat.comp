//! variant f16 OUT=float16_t needs=coopmat,fp16,storage16,subgroup_control
//! variant f16_f32 OUT=float needs=coopmat,fp16,storage16,subgroup_control
// C = epilogue(A W^T) on the matrix units (VK_KHR_cooperative_matrix): f16 times f16, summed in f32.
//
//   grid        tiles of tile_m x tile_n outputs; neighbours share the columns
//   workgroup   subgroups_m x subgroups_n subgroups; walks K in steps of step_k. A step of A [tile_m][step_k]
//               and W [tile_n][step_k] lies in shared memory as f16, rows padded by 16 bytes: the next bank
//               group, and still aligned as a matrix load asks
//   subgroup    matrices_m x matrices_n accumulators of matrix_m x matrix_n (f32), in registers
//   store       accumulator by accumulator through a patch of shared memory of the subgroup's own, because
//               only there it is known which element a lane holds; then the epilogue, with edges
//
// The shape of a matrix comes from the device's own list. A step past an edge of K is zero in both operands;
// a row past an edge is the last row again and is never stored.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "matmul.h"

layout(push_constant) uniform Push { MatmulParams p; };
layout(set = 0, binding = 0) readonly buffer A { f16vec4 a[]; };
layout(set = 0, binding = 1) readonly buffer W { f16vec4 w[]; };
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3) readonly buffer Scale { float scale[]; };
layout(set = 0, binding = 4) readonly buffer Residual { float residual[]; };
layout(set = 0, binding = 5) writeonly buffer C { OUT c[]; };

#define EPILOGUE_BIAS(column) bias[column]
#define EPILOGUE_SCALE(column) scale[column]
#define EPILOGUE_RESIDUAL(at) residual[at]
#include "lib/epilogue.glsl"
#include "lib/tile.glsl"

layout(local_size_x_id = 4) in;  // subgroups_m * subgroups_n * subgroup_size
layout(constant_id = 5) const uint subgroup_size = 32;  // the pipeline requires this size and full subgroups
layout(constant_id = 6) const uint matrix_m = 16;
layout(constant_id = 7) const uint matrix_n = 16;
layout(constant_id = 8) const uint matrix_k = 16;
layout(constant_id = 9) const uint subgroups_m = 1;
layout(constant_id = 10) const uint subgroups_n = 1;
layout(constant_id = 11) const uint matrices_m = 1;
layout(constant_id = 12) const uint matrices_n = 1;
layout(constant_id = 13) const uint step_k = 16;       // a multiple of matrix_k and of 8
layout(constant_id = 14) const bool aligned = false;  // K is a multiple of 4

const uint threads = subgroups_m * subgroups_n * subgroup_size;
const uint tile_m = subgroups_m * matrices_m * matrix_m;
const uint tile_n = subgroups_n * matrices_n * matrix_n;
const uint step_k4 = step_k / 4;
const uint stride = step_k4 + 2;
const uint loads_a = (tile_m * step_k4 + threads - 1) / threads;
const uint loads_w = (tile_n * step_k4 + threads - 1) / threads;

shared f16vec4 tile_of_a[tile_m * stride];
shared f16vec4 tile_of_w[tile_n * stride];
shared float patches[subgroups_m * subgroups_n * matrix_m * matrix_n];

#define half_of(buffer, at) buffer[(at) >> 2][(at)&3]
#define FETCH(NAME, BUFFER, ROWS)                                             \
  f16vec4 NAME(uint row, uint k) {                                            \
    const float16_t zero = float16_t(0.0);                                    \
    const uint at = min(row, ROWS - 1) * p.k + k;                             \
    if (aligned) return k < p.k ? BUFFER[at >> 2] : f16vec4(zero);            \
    return f16vec4(k < p.k ? half_of(BUFFER, at) : zero,                      \
                   k + 1 < p.k ? half_of(BUFFER, at + 1) : zero,              \
                   k + 2 < p.k ? half_of(BUFFER, at + 2) : zero,              \
                   k + 3 < p.k ? half_of(BUFFER, at + 3) : zero);             \
  }
FETCH(fetch_a, a, p.m)
FETCH(fetch_w, w, p.n)

#define Sum coopmat<float, gl_ScopeSubgroup, matrix_m, matrix_n, gl_MatrixUseAccumulator>

void main() {
  const uint tile = linear_group();
  if (tile >= p.tiles) return;
  const uint first_row = (tile % p.tiles_m) * tile_m;
  const uint first_column = (tile / p.tiles_m) * tile_n;
  const uint thread = gl_LocalInvocationIndex;
  const uint subgroup_row = (gl_SubgroupID / subgroups_n) * matrices_m * matrix_m;
  const uint subgroup_column = (gl_SubgroupID % subgroups_n) * matrices_n * matrix_n;

  f16vec4 next_a[loads_a];
  f16vec4 next_w[loads_w];
  Sum sums[matrices_m * matrices_n];
  [[unroll]] for (uint i = 0; i < matrices_m * matrices_n; ++i) sums[i] = Sum(0.0);

  [[unroll]] for (uint i = 0; i < loads_a; ++i) {
    const uint e = thread + i * threads;
    next_a[i] = fetch_a(first_row + e / step_k4, (e % step_k4) * 4);
  }
  [[unroll]] for (uint i = 0; i < loads_w; ++i) {
    const uint e = thread + i * threads;
    next_w[i] = fetch_w(first_column + e / step_k4, (e % step_k4) * 4);
  }

  [[dont_unroll]] for (uint k = 0; k < p.k; k += step_k) {
    [[unroll]] for (uint i = 0; i < loads_a; ++i) {
      const uint e = thread + i * threads;
      if (e < tile_m * step_k4) tile_of_a[e / step_k4 * stride + e % step_k4] = next_a[i];
    }
    [[unroll]] for (uint i = 0; i < loads_w; ++i) {
      const uint e = thread + i * threads;
      if (e < tile_n * step_k4) tile_of_w[e / step_k4 * stride + e % step_k4] = next_w[i];
    }
    barrier();

    const uint next_k = k + step_k;
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

    [[unroll]] for (uint kk = 0; kk < step_k; kk += matrix_k) {
      coopmat<float16_t, gl_ScopeSubgroup, matrix_m, matrix_k, gl_MatrixUseA> rows[matrices_m];
      [[unroll]] for (uint i = 0; i < matrices_m; ++i) {
        coopMatLoad(rows[i], tile_of_a, (subgroup_row + i * matrix_m) * stride + kk / 4, stride,
                    gl_CooperativeMatrixLayoutRowMajor);
      }
      [[unroll]] for (uint j = 0; j < matrices_n; ++j) {
        coopmat<float16_t, gl_ScopeSubgroup, matrix_k, matrix_n, gl_MatrixUseB> columns;
        coopMatLoad(columns, tile_of_w, (subgroup_column + j * matrix_n) * stride + kk / 4, stride,
                    gl_CooperativeMatrixLayoutColumnMajor);
        [[unroll]] for (uint i = 0; i < matrices_m; ++i) {
          sums[i * matrices_n + j] = coopMatMulAdd(rows[i], columns, sums[i * matrices_n + j]);
        }
      }
    }
    barrier();
  }

  // One accumulator at a time, picked by comparing so that the array of them is only ever indexed by
  // constants (else drivers move it to memory) while the epilogue's code exists once.
  const uint patch_at = gl_SubgroupID * matrix_m * matrix_n;
  [[dont_unroll]] for (uint s = 0; s < matrices_m * matrices_n; ++s) {
    [[unroll]] for (uint i = 0; i < matrices_m * matrices_n; ++i) {
      if (i == s) coopMatStore(sums[i], patches, patch_at, matrix_n, gl_CooperativeMatrixLayoutRowMajor);
    }
    subgroupBarrier();
    const uint patch_row = first_row + subgroup_row + (s / matrices_n) * matrix_m;
    const uint patch_column = first_column + subgroup_column + (s % matrices_n) * matrix_n;
    for (uint e = gl_SubgroupInvocationID; e < matrix_m * matrix_n; e += subgroup_size) {
      const uint row = patch_row + e / matrix_n;
      const uint column = patch_column + e % matrix_n;
      if (row < p.m && column < p.n) {
        const uint at = row * p.n + column;
        c[at] = store_as(OUT, epilogue(patches[patch_at + e], column, at));
      }
    }
    subgroupBarrier();
  }
}
