//! variant f32 IN4=vec4 OUT=float OUT4=vec4
//! variant f16 IN4=f16vec4 OUT=float16_t OUT4=f16vec4 needs=storage16
//! variant f16_f32 IN4=f16vec4 OUT=float OUT4=vec4 needs=storage16
//! variant patches_f32 PATCHES=1 IN4=vec4 OUT=float OUT4=vec4
//! variant patches_f32_f16 PATCHES=1 IN4=vec4 OUT=float16_t OUT4=f16vec4 needs=storage16
//! variant patches_f16 PATCHES=1 IN4=f16vec4 OUT=float16_t OUT4=f16vec4 needs=storage16
//! variant patches_f16_f32 PATCHES=1 IN4=f16vec4 OUT=float OUT4=vec4 needs=storage16
//! variant mixed_f16 IN4=f16vec4 TILE4=f16vec4 OUT=float16_t OUT4=f16vec4 needs=storage16,fp16
//! variant mixed_f16_f32 IN4=f16vec4 TILE4=f16vec4 OUT=float OUT4=vec4 needs=storage16,fp16
//! variant rotary_f32 ROTARY=1 IN4=vec4 OUT2=vec2
//! variant rotary_f16 ROTARY=1 IN4=f16vec4 OUT2=f16vec2 needs=storage16
//! variant rotary_mixed_f16 ROTARY=1 IN4=f16vec4 TILE4=f16vec4 OUT2=f16vec2 needs=storage16,fp16
// C = epilogue(A W^T) with tiles in shared memory, for GPUs.
//
//   grid        tiles of tile_m x tile_n outputs, times the slices of K; neighbours share the columns, so
//               that W's rows stay in the cache
//   workgroup   walks its slice of K in steps of step_k; a step of A and of W lies in shared memory as f32,
//               whatever the storage type, with K outermost: [step_k][tile / 4] of vec4
//   invocation  thread_m x thread_n outputs as blocks of 4 x 4, interleaved across the workgroup: rows
//               4 * (r + i * threads_m) .., columns 4 * (c + j * threads_n) ..; neighbouring lanes differ in
//               the column, so their stores are contiguous and their reads of A are broadcasts
//   staging     an invocation reads four values of K from each of four rows, and writes the four columns of
//               that block: both ways whole vec4
//   ahead       steps whose global loads are on their way while one is multiplied. With 1 or 2 they go to the
//               other half of shared memory: one barrier a step; with 2 from two sets of registers in turn, so
//               that memory has twice the time where few subgroups fill the gap. With 0 (fewer registers, half
//               the memory) the other workgroups of the compute unit do.
//   one_way     where a block of A and one of W are put is picked, so that all invocations write the same way
//               whichever they hold: fewer branches, an addition or two more
//
// The mixed variants keep the tiles as halves, two to a register, and write float(a) * float(b) + sum: each
// product is exact and each sum is f32, as everywhere in Vitrine. RDNA does that in one instruction that
// reads packed halves (v_fma_mix_f32), Apple's GPUs in any; the gain is half the shared memory and its reads,
// and more subgroups a core. Sums in packed halves (v_pk_fma_f16: two multiply-adds an instruction) are not
// taken: four products of 150 times 150 already pass 65504, where f32 has room. A dot product of two halves
// into f32 (v_dot2_f32_f16) would keep the promise, but Mesa's compiler makes v_pk_mul_f16 and v_pk_fma_f16
// of GLSL's dot, with halves in between.
//
// A transposed operand lies with K outermost, as shared memory has it: an invocation reads the four columns of
// its block where they are, and has nothing to turn.
//
// The patches variants have images for A, and read its rows out of them (lib/patches.glsl). The rotary variants turn
// queries and keys before they store them (lib/rotary_epilogue.glsl); of their C, four divides the columns.
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
#ifdef PATCHES
layout(set = 0, binding = 0) readonly buffer Images { vec4 images[]; };
#else
layout(set = 0, binding = 0) readonly buffer A { IN4 a[]; };
#endif
layout(set = 0, binding = 1) readonly buffer W { IN4 w[]; };
layout(set = 0, binding = 2) readonly buffer Bias { vec4 bias4[]; };
layout(set = 0, binding = 3) readonly buffer Scale { vec4 scale4[]; };
layout(set = 0, binding = 4) readonly buffer Residual { vec4 residual4[]; };
#ifdef ROTARY
layout(set = 0, binding = 5) writeonly buffer C { OUT2 c2[]; };
layout(set = 0, binding = 6) readonly buffer Angles { vec2 angles[]; };
#else
layout(set = 0, binding = 5) writeonly buffer C { OUT4 c[]; };
#endif

#define EPILOGUE_BY_FOURS
#include "lib/epilogue.glsl"
#include "lib/tile.glsl"

layout(local_size_x_id = 4) in;  // threads_m * threads_n
layout(constant_id = 5) const uint tile_m = 64;
layout(constant_id = 6) const uint tile_n = 64;
layout(constant_id = 7) const uint step_k = 16;
layout(constant_id = 8) const uint thread_m = 4;
layout(constant_id = 9) const uint thread_n = 4;
layout(constant_id = 10) const uint k_multiple = 1;     // what K is a multiple of: 1, 4 or step_k
layout(constant_id = 11) const bool aligned_n = false;  // N is a multiple of 4
layout(constant_id = 12) const uint ahead = 1;
layout(constant_id = 13) const bool transposed_a = false;  // A is [k][m]
layout(constant_id = 14) const bool transposed_w = false;  // W is [k][n]
layout(constant_id = 15) const bool aligned_m = false;     // M is a multiple of 4; asked where A is transposed
layout(constant_id = 16) const bool one_way = false;

#ifdef PATCHES
#define PATCHES_FIRST_ID 17
#include "lib/patches.glsl"
#endif
#ifdef ROTARY
#define ROTARY_FIRST_ID 17
#include "lib/rotary_epilogue.glsl"
#define line_of(left, row) (left ? row : rotary_source(row))
#else
#define line_of(left, row) row
#endif

const uint threads_m = tile_m / thread_m;
const uint threads_n = tile_n / thread_n;
const uint threads = threads_m * threads_n;
const uint quads_m = thread_m / 4;
const uint quads_n = thread_n / 4;
const uint step_k4 = step_k / 4;
// Odd, and shifted by two at every eighth k: the eight lanes that write at once hit different banks.
const uint pitch_m = tile_m / 4 + 1;
const uint pitch_n = tile_n / 4 + 1;
#define SLOT(k, pitch) ((k) * (pitch) + (k) / 8 * 2)
const uint size_m = SLOT(step_k, pitch_m);
const uint size_n = SLOT(step_k, pitch_n);
const uint halves = ahead > 0 ? 2 : 1;
const uint sets = ahead > 1 ? ahead : 1;  // of registers
// Blocks of 4 x 4 that a step brings in, A's first.
const uint blocks_a = tile_m / 4 * step_k4;
const uint blocks = blocks_a + tile_n / 4 * step_k4;
const uint loads = (blocks + threads - 1) / threads;

#ifndef TILE4
#define TILE4 vec4
#endif
shared TILE4 tiles[halves * (size_m + size_n)];  // A's halves, then W's
const uint tiles_of_w = halves * size_m;

// Where the rows of this invocation's blocks start, counted in elements or, with K a multiple of 4, in fours. Of
// patches where each begins in the images, of a transposed operand the rows themselves.
uint rows_at[loads * 4];
TILE4 staged[sets * loads * 4];
const uint unit = k_multiple == 1 ? 1 : 4;

// Four values of a row from its k on, of which those before `left` count.
#define FETCH(NAME, BUFFER)                                                             \
  TILE4 NAME(uint row, uint k, uint left) {                                             \
    if (k_multiple == step_k) return TILE4(BUFFER[row + k / 4]);                        \
    if (k_multiple == 4) return left > 0 ? TILE4(BUFFER[row + k / 4]) : TILE4(0.0);     \
    return TILE4(left > 0 ? element_of(BUFFER, row + k) : 0.0,                          \
                 left > 1 ? element_of(BUFFER, row + k + 1) : 0.0,                      \
                 left > 2 ? element_of(BUFFER, row + k + 2) : 0.0,                      \
                 left > 3 ? element_of(BUFFER, row + k + 3) : 0.0);                     \
  }
#ifdef PATCHES
TILE4 fetch_a(uint start, uint k, uint left) {
  return TILE4(patch_quad(start, k, k_multiple == step_k ? 4 : left));
}
#else
FETCH(fetch_a, a)
#endif
FETCH(fetch_w, w)

// Four rows of a transposed operand at one k, of which i numbers the block.
#define FETCH_TRANSPOSED(NAME, BUFFER, ROWS, ALIGNED)                                   \
  TILE4 NAME(uint i, uint k) {                                                          \
    if (ALIGNED) return TILE4(BUFFER[(k * ROWS + rows_at[i * 4]) / 4]);                 \
    return TILE4(element_of(BUFFER, k * ROWS + rows_at[i * 4]),                         \
                 element_of(BUFFER, k * ROWS + rows_at[i * 4 + 1]),                     \
                 element_of(BUFFER, k * ROWS + rows_at[i * 4 + 2]),                     \
                 element_of(BUFFER, k * ROWS + rows_at[i * 4 + 3]));                    \
  }
#ifndef PATCHES
FETCH_TRANSPOSED(fetch_transposed_a, a, p.m, aligned_m)
#endif
FETCH_TRANSPOSED(fetch_transposed_w, w, p.n, aligned_n)

void fetch(const uint set, uint k, uint end) {
  [[unroll]] for (uint i = 0; i < loads; ++i) {
    const uint e = gl_LocalInvocationIndex + i * threads;
    const uint own_k = k + e % step_k4 * 4;
    const uint left = own_k < end ? end - own_k : 0;
    const uint at = (set * loads + i) * 4;
    if (e < blocks_a) {
      [[unroll]] for (uint r = 0; r < 4; ++r) {
#ifdef PATCHES
        staged[at + r] = fetch_a(rows_at[i * 4 + r], own_k, left);
#else
        staged[at + r] = !transposed_a ? fetch_a(rows_at[i * 4 + r], k, left)
                         : r < left    ? fetch_transposed_a(i, own_k + r)
                                       : TILE4(0.0);
#endif
      }
    } else if (blocks % threads == 0 || e < blocks) {
      [[unroll]] for (uint r = 0; r < 4; ++r) {
        staged[at + r] = !transposed_w ? fetch_w(rows_at[i * 4 + r], k, left)
                         : r < left    ? fetch_transposed_w(i, own_k + r)
                                       : TILE4(0.0);
      }
    }
  }
}

void stage(const uint set, uint half_m, uint half_n) {
  [[unroll]] for (uint i = 0; i < loads; ++i) {
    uint e = gl_LocalInvocationIndex + i * threads;
    const bool left = e < blocks_a;
    if (!left) e -= blocks_a;
    const bool held = blocks % threads == 0 || left || e < blocks - blocks_a;
    const uint k = e % step_k4 * 4, at = (set * loads + i) * 4;
    const uint in_a = half_m + SLOT(k, pitch_m) + e / step_k4;
    const uint in_w = tiles_of_w + half_n + SLOT(k, pitch_n) + e / step_k4;
    const uint first = left ? in_a : in_w, pitch = left ? pitch_m : pitch_n;
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      TILE4 column = TILE4(staged[at][c], staged[at + 1][c], staged[at + 2][c], staged[at + 3][c]);
      if (left ? transposed_a : transposed_w) column = staged[at + c];
      if (one_way) {
        if (held) tiles[first + c * pitch] = column;
      } else if (left) {
        tiles[in_a + c * pitch_m] = column;
      } else if (held) {
        tiles[in_w + c * pitch_n] = column;
      }
    }
  }
}

void main() {
  const uint group = linear_group();
  if (group >= p.tiles * p.slices) return;
  const uint slice = group / p.tiles;
  const uint tile = group - slice * p.tiles;
  const uint first_row = (tile % p.tiles_m) * tile_m;
  const uint first_column = (tile / p.tiles_m) * tile_n;
  const uint begin = slice * p.slice_k;
  const uint end = min(p.k, begin + p.slice_k);
  const uint thread_row = gl_LocalInvocationIndex / threads_n;
  const uint thread_column = gl_LocalInvocationIndex % threads_n;

  [[unroll]] for (uint i = 0; i < loads; ++i) {
    const uint e = gl_LocalInvocationIndex + i * threads;
    const bool left = e < blocks_a;
    const uint row = left ? first_row + e / step_k4 * 4 : first_column + (e - blocks_a) / step_k4 * 4;
    const uint last = (left ? p.m : p.n) - 1;
#ifdef PATCHES
    if (left) {
      [[unroll]] for (uint r = 0; r < 4; ++r) rows_at[i * 4 + r] = patch_start(min(row + r, last));
      continue;
    }
#endif
    if (left ? transposed_a : transposed_w) {
      [[unroll]] for (uint r = 0; r < 4; ++r) rows_at[i * 4 + r] = min(row + r, last);
      if (left ? aligned_m : aligned_n) rows_at[i * 4] = min(row, last - 3);
      continue;
    }
    [[unroll]] for (uint r = 0; r < 4; ++r) {
      rows_at[i * 4 + r] = (line_of(left, min(row + r, last)) * p.k + e % step_k4 * 4) / unit;
    }
  }
  float sums[thread_m * thread_n];
  [[unroll]] for (uint i = 0; i < thread_m * thread_n; ++i) sums[i] = 0.0;

  uint half_m = 0, half_n = 0;
  if (ahead > 0) {
    fetch(0, begin, end);
    if (ahead > 1 && begin + step_k < end) fetch(sets - 1, begin + step_k, end);
    stage(0, 0, 0);
    barrier();
  }
  [[dont_unroll]] for (uint first = begin; first < end; first += sets * step_k) {
    [[unroll]] for (uint set = 0; set < sets; ++set) {
      const uint k = first + set * step_k;
      if (set == 0 || k < end) {
        if (ahead == 0) {
          fetch(0, k, end);
          stage(0, 0, 0);
          barrier();
        } else if (k + ahead * step_k < end) {
          fetch(set, k + ahead * step_k, end);
        }

        [[unroll]] for (uint kk = 0; kk < step_k; ++kk) {
          TILE4 rows[quads_m];
          [[unroll]] for (uint i = 0; i < quads_m; ++i) {
            rows[i] = tiles[half_m + thread_row + SLOT(kk, pitch_m) + i * threads_m];
          }
          [[unroll]] for (uint j = 0; j < quads_n; ++j) {
            const TILE4 columns = tiles[tiles_of_w + half_n + thread_column + SLOT(kk, pitch_n) + j * threads_n];
            [[unroll]] for (uint r = 0; r < thread_m; ++r) {
              [[unroll]] for (uint n = 0; n < 4; ++n) {
                sums[r * thread_n + j * 4 + n] += float(rows[r / 4][r % 4]) * float(columns[n]);
              }
            }
          }
        }

        if (ahead > 0) {
          half_m = size_m - half_m;
          half_n = size_n - half_n;
          if (k + step_k < end) stage((set + 1) % sets, half_m, half_n);
        }
        barrier();
      }
    }
  }

  // One row at a time, picked by comparing so that the array is only ever indexed by constants, while the
  // epilogue's code exists quads_n times and not thread_m times as often.
  [[dont_unroll]] for (uint s = 0; s < thread_m; ++s) {
    float picked[thread_n];
    [[unroll]] for (uint i = 0; i < thread_m; ++i) {
      [[unroll]] for (uint j = 0; j < thread_n; ++j) {
        if (i == 0 || i == s) picked[j] = sums[i * thread_n + j];
      }
    }
    const uint row = first_row + (s / 4 * threads_m + thread_row) * 4 + s % 4;
    if (row >= p.m) continue;
    [[unroll]] for (uint j = 0; j < quads_n; ++j) {
      const uint column = first_column + (j * threads_n + thread_column) * 4;
      if (column >= p.n) continue;
#ifdef ROTARY
      const vec4 values = vec4(picked[j * 4], picked[j * 4 + 1], picked[j * 4 + 2], picked[j * 4 + 3]);
      store_rotary4(values, rotary_bias4(column), row, column, p.n);
#else
      const uint at = row * p.n + column;
      const uint out_at = slice * p.m * p.n + at;
      if (aligned_n) {
        const vec4 values = vec4(picked[j * 4], picked[j * 4 + 1], picked[j * 4 + 2], picked[j * 4 + 3]);
        c[out_at >> 2] = OUT4(epilogue4(values, column, at));
      } else {
        [[unroll]] for (uint n = 0; n < 4; ++n) {
          if (column + n < p.n) {
            const float value = epilogue(picked[j * 4 + n], column + n, at + n);
            c[(out_at + n) >> 2][(out_at + n) & 3] = store_as(OUT, value);
          }
        }
      }
#endif
    }
  }
}
