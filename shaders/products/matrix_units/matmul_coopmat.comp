//! variant f16 OUT=float16_t OUT4=f16vec4 needs=coopmat,fp16,storage16,subgroup_control
//! variant f16_f32 OUT=float OUT4=vec4 DIRECT=1 needs=coopmat,fp16,storage16,subgroup_control
//! variant f16_flexible OUT=float16_t OUT4=f16vec4 BY_ELEMENT=1 needs=coopmat,coopmat2,coopmat2_elements,fp16,storage16,subgroup_control
//! variant f16_f32_flexible OUT=float OUT4=vec4 DIRECT=1 BY_ELEMENT=1 needs=coopmat,coopmat2,coopmat2_elements,fp16,storage16,subgroup_control
//! variant patches_f16 PATCHES=1 OUT=float16_t OUT4=f16vec4 needs=coopmat,fp16,storage16,subgroup_control
//! variant patches_f16_f32 PATCHES=1 OUT=float OUT4=vec4 DIRECT=1 needs=coopmat,fp16,storage16,subgroup_control
//! variant patches_f16_flexible PATCHES=1 OUT=float16_t OUT4=f16vec4 BY_ELEMENT=1 needs=coopmat,coopmat2,coopmat2_elements,fp16,storage16,subgroup_control
//! variant patches_f16_f32_flexible PATCHES=1 OUT=float OUT4=vec4 DIRECT=1 BY_ELEMENT=1 needs=coopmat,coopmat2,coopmat2_elements,fp16,storage16,subgroup_control
//! variant rotary_f16 ROTARY=1 OUT2=f16vec2 needs=coopmat,fp16,storage16,subgroup_control
//! variant rounded ROUNDED=1 OUT=float OUT4=vec4 DIRECT=1 needs=coopmat,fp16,subgroup_control
//! variant rounded_flexible ROUNDED=1 OUT=float OUT4=vec4 DIRECT=1 BY_ELEMENT=1 needs=coopmat,coopmat2,coopmat2_elements,fp16,subgroup_control
// C = epilogue(A W^T) on the matrix units (VK_KHR_cooperative_matrix): f16 times f16, summed in f32.
//
//   grid        tiles of tile_m x tile_n outputs, in panels (lib/panels.glsl), times the slices of K
//   workgroup   subgroups_m x subgroups_n subgroups; walks its slice of K in steps of step_k. A step of A [tile_m][step_k]
//               and W [tile_n][step_k] lies in shared memory as f16. Rows are padded by 16 bytes, so that the
//               eight rows which a matrix load reads at once begin in eight different groups of banks.
//               With two buffers the next step is written beside the one that is multiplied, and a step costs
//               one barrier; with one buffer it costs two
//   ahead       steps whose loads are on their way while one is multiplied, each in registers of its own: Vulkan
//               copies nothing to shared memory behind the shader's back. Two or three where a step is multiplied in
//               less time than memory takes; a pass through the loop is then as many steps, so that no registers move
//   subgroup    matrices_m x matrices_n accumulators of matrix_m x matrix_n (f32), in registers
//   store       f32 where nothing is fused and the tile is whole, straight from the accumulators. Else a strip of
//               matrix_m rows at a time through shared memory, because only there it is known which element a lane
//               holds; then the epilogue, four columns a lane, with edges. f16 always: of accumulators NVIDIA's
//               compiler stores each half on its own, and Intel's Arc A lists none of f16
//
// The shape of a matrix comes from the device's own list. A step past an edge of K is zero in both operands;
// a row past an edge is the last row again and is never stored.
//
// The patches variants have images for A, of f32, and read its rows out of them (lib/patches.glsl), rounded to f16. The
// rotary variant turns queries and keys before it stores them (lib/rotary_epilogue.glsl).
//
// The rounded variants are for training: A and W are f32 and become f16 on their way to shared memory; either may lie
// column by column. What is fetched stays f32 until it is put there, or rounding would wait for it in front of the step
// that hides it. Gradients are too small for f16: where their largest is known, A is multiplied by the power of two that
// brings it just below f16's end, and the sums are divided by it.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#ifdef BY_ELEMENT
#extension GL_NV_cooperative_matrix2 : require
#endif
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/panels.glsl"
#include "products/matmul.h"

// A and W twice: by eight where K is a multiple of eight, else by single values, or by four where A is images. The
// other one is not bound. Of f32, by four where they lie row by row and K is a multiple of four, else by single values.
layout(push_constant) uniform Push { MatmulParams p; };
#ifdef PATCHES
layout(set = 0, binding = 0) readonly buffer Images { vec4 images[]; };
#elif defined(ROUNDED)
layout(set = 0, binding = 0) readonly buffer A4 { vec4 a4[]; };
#else
layout(set = 0, binding = 0) readonly buffer A8 { uvec4 a8[]; };
#endif
#ifdef ROUNDED
layout(set = 0, binding = 1) readonly buffer W4 { vec4 w4[]; };
#else
layout(set = 0, binding = 1) readonly buffer W8 { uvec4 w8[]; };
#endif
layout(set = 0, binding = 2) readonly buffer Bias { vec4 bias4[]; };
layout(set = 0, binding = 3) readonly buffer Scale { vec4 scale4[]; };
layout(set = 0, binding = 4) readonly buffer Residual { vec4 residual4[]; };
#ifdef ROTARY
layout(set = 0, binding = 5) writeonly buffer C { OUT2 c2[]; };
#else
layout(set = 0, binding = 5) writeonly buffer C { OUT4 c[]; };
#endif
#ifdef PATCHES
layout(set = 0, binding = 6) readonly buffer W4 { uvec2 w4[]; };
#elif defined(ROUNDED)
layout(set = 0, binding = 6) readonly buffer A { float a[]; };
layout(set = 0, binding = 7) readonly buffer W { float w[]; };
layout(set = 0, binding = 8) readonly buffer Magnitude { float largest; };  // of |a|, where `scaled`
#else
layout(set = 0, binding = 6) readonly buffer A { float16_t a[]; };
layout(set = 0, binding = 7) readonly buffer W { float16_t w[]; };
#endif
#ifdef ROTARY
layout(set = 0, binding = 8) readonly buffer Angles { vec2 angles[]; };
#endif

#define EPILOGUE_BY_FOURS
#include "lib/epilogue.glsl"

layout(local_size_x_id = 4) in;  // subgroups_m * subgroups_n * subgroup_size
layout(constant_id = 5) const uint subgroup_size = 32;  // the pipeline requires this size and full subgroups
layout(constant_id = 6) const uint matrix_m = 16;
layout(constant_id = 7) const uint matrix_n = 16;
layout(constant_id = 8) const uint matrix_k = 16;
layout(constant_id = 9) const uint subgroups_m = 1;
layout(constant_id = 10) const uint subgroups_n = 1;
layout(constant_id = 11) const uint matrices_m = 1;
layout(constant_id = 12) const uint matrices_n = 1;
layout(constant_id = 13) const uint step_k = 16;        // a multiple of matrix_k, which is one of 8
layout(constant_id = 14) const uint buffers = 1;        // 1 or 2
layout(constant_id = 15) const bool by_eight = false;   // K is a multiple of 8
layout(constant_id = 16) const bool by_four = false;    // N is a multiple of 4
layout(constant_id = 17) const bool store_directly = false;  // nothing is fused, C is f32 and its rows are 16-byte aligned
layout(constant_id = 18) const uint panel = 16;              // rows of tiles
layout(constant_id = 19) const bool sliced = false;          // K is cut; else compilers see where it begins and ends
layout(constant_id = 20) const uint ahead = 1;               // 1 to 3
layout(constant_id = 21) const bool rolled = false;          // the products of a step are a loop: fewer registers
layout(constant_id = 22) const bool keep_columns = false;    // of a strip each lane has four columns, in rows_at_once rows

#ifdef PATCHES
#define PATCHES_FIRST_ID 23
#include "lib/patches.glsl"
#endif
#ifdef ROTARY
#define ROTARY_FIRST_ID 23
#include "lib/rotary_epilogue.glsl"
#define source_of(column) rotary_source(column)
#define bias4_at(column) rotary_bias4(column)
#else
#define source_of(column) (column)
#define bias4_at(column) bias4_of(column)
#endif
#ifdef ROUNDED
#define ROUNDED_FIRST_ID 23
#include "lib/rounded.glsl"
#else
const bool a_turned = false, w_turned = false;
#endif

const uint threads = subgroups_m * subgroups_n * subgroup_size;
const uint tile_m = subgroups_m * matrices_m * matrix_m;
const uint tile_n = subgroups_n * matrices_n * matrix_n;
const uint step8 = step_k / 8;
const uint pitch = step8 + 1;  // in shared memory, where everything counts 16 bytes
const uint items_a = tile_m * step8;
const uint items_w = tile_n * step8;
const uint loads_a = (items_a + threads - 1) / threads;
const uint loads_w = (items_w + threads - 1) / threads;
const uint tile_of_w = tile_m * pitch;
const uint buffer_size = (tile_m + tile_n) * pitch;

const uint strip_width4 = matrices_n * matrix_n / 4;
const uint strip_pitch = strip_width4 + 1;
const uint strip_size = matrix_m * strip_pitch;
const uint rows_at_once = subgroup_size > strip_width4 ? subgroup_size / strip_width4 : 1;
const uint quads = matrix_m > rows_at_once ? matrix_m / rows_at_once : 1;
#ifdef BY_ELEMENT
const uint strips_size = 0;
#else
const uint strips_size = subgroups_m * subgroups_n * strip_size;
#endif

// The tiles, and after the last step the strips.
shared uvec4 memory[buffers * buffer_size > strips_size ? buffers * buffer_size : strips_size];

// Of this workgroup's slice of K, where there are several: its end, and where its sums begin in C.
uint slice_end;
uint first_out = 0;
#define end (sliced ? slice_end : p.k)

#ifdef ROUNDED
// The row's first value is at `start`, and `apart` is how far the next ones are. Zeros from column `end` on.
#define FETCH(NAME, FOURS, VALUES, BY_FOUR)                                                                \
  Eight NAME(uint start, uint k, uint apart) {                                                             \
    if (BY_FOUR) {                                                                                         \
      const uint at = (start + k) >> 2;                                                                    \
      return Eight(k < end ? FOURS[at] : vec4(0.0), k + 4 < end ? FOURS[at + 1] : vec4(0.0));              \
    }                                                                                                      \
    Eight eight;                                                                                           \
    [[unroll]] for (uint i = 0; i < 4; ++i) {                                                              \
      eight.low[i] = k + i < end ? VALUES[start + (k + i) * apart] : 0.0;                                  \
      eight.high[i] = k + 4 + i < end ? VALUES[start + (k + 4 + i) * apart] : 0.0;                         \
    }                                                                                                      \
    return eight;                                                                                          \
  }
#else
#define Eight uvec4
#define packed(eight, factor) (eight)

// The row starts at `start`. Zeros from column `end` on.
#define FETCH(NAME, EIGHTS, VALUES)                                             \
  uvec4 NAME(uint start, uint k) {                                              \
    const uint at = start + k;                                                  \
    if (by_eight) return k < end ? EIGHTS[at >> 3] : uvec4(0);                  \
    const float16_t zero = float16_t(0.0);                                      \
    uvec4 eight;                                                                \
    [[unroll]] for (uint i = 0; i < 4; ++i) {                                   \
      const float16_t low = k + 2 * i < end ? VALUES[at + 2 * i] : zero;        \
      const float16_t high = k + 2 * i + 1 < end ? VALUES[at + 2 * i + 1] : zero; \
      eight[i] = packFloat2x16(f16vec2(low, high));                             \
    }                                                                           \
    return eight;                                                               \
  }
#endif
#ifdef PATCHES
uint left_from(uint k) { return k < end ? end - k : 0; }
uvec2 pack_quad(vec4 quad) {
  const f16vec4 halves = f16vec4(quad);
  return uvec2(packFloat2x16(halves.xy), packFloat2x16(halves.zw));
}
uvec4 fetch_a(uint start, uint k) {
  return uvec4(pack_quad(patch_quad(start, k, left_from(k))), pack_quad(patch_quad(start, k + 4, left_from(k + 4))));
}
uvec4 fetch_w(uint start, uint k) {
  const uint at = start + k;
  if (by_eight) return k < end ? w8[at >> 3] : uvec4(0);
  return uvec4(k < end ? w4[at >> 2] : uvec2(0), k + 4 < end ? w4[(at >> 2) + 1] : uvec2(0));
}
#elif defined(ROUNDED)
FETCH(fetch_row_a, a4, a, a_by_four)
FETCH(fetch_row_w, w4, w, w_by_four)
#define fetch_a(start, k) fetch_row_a(start, k, a_turned ? p.m : 1)
#define fetch_w(start, k) fetch_row_w(start, k, w_turned ? p.n : 1)
#else
FETCH(fetch_a, a8, a)
FETCH(fetch_w, w8, w)
#endif

#define Sum coopmat<float, gl_ScopeSubgroup, matrix_m, matrix_n, gl_MatrixUseAccumulator>

#ifdef BY_ELEMENT
float store_element(const in uint row, const in uint column, const in float sum, const in uint first_row,
                    const in uint first_column) {
  const uint m = first_row + row, n = first_column + column;
  if (m < p.m && n < p.n) {
    const uint at = m * p.n + n, out_at = first_out + at;
    c[out_at >> 2][out_at & 3] = store_as(OUT, epilogue(sum, n, at));
  }
  return sum;
}
#endif

void main() {
  uint tile = linear_group();
  uint begin = 0;
  if (sliced) {
    if (tile >= p.tiles * p.slices) return;
    const uint slice = tile / p.tiles;
    tile -= slice * p.tiles;
    begin = slice * p.slice_k;
    slice_end = min(p.k, begin + p.slice_k);
    first_out = slice * p.m * p.n;
  } else if (tile >= p.tiles) {
    return;
  }
  const uvec2 place_of_tile = tile_place(tile, p.tiles_m, p.tiles, panel);
  const uint first_row = place_of_tile.x * tile_m;
  const uint first_column = place_of_tile.y * tile_n;
  const uint thread = gl_LocalInvocationIndex;
  const uint subgroup_row = (gl_SubgroupID / subgroups_n) * matrices_m * matrix_m;
  const uint subgroup_column = (gl_SubgroupID % subgroups_n) * matrices_n * matrix_n;

  // Which rows and columns of the step this invocation's shares of A and W are: neighbours take the next eight columns of
  // a row, or the next row where those lie side by side. Then where they begin, and where they go.
#define share_row(i, turned, rows) \
  (turned ? (thread + (i)*threads) % rows : (thread + (i)*threads) / step8)
#define share_eight(i, turned, rows) \
  (turned ? (thread + (i)*threads) / rows : (thread + (i)*threads) % step8)
#define share_place(i, turned, rows) (share_row(i, turned, rows) * pitch + share_eight(i, turned, rows))
  uint start_a[loads_a], start_w[loads_w];
  [[unroll]] for (uint i = 0; i < loads_a; ++i) {
    const uint row = min(first_row + share_row(i, a_turned, tile_m), p.m - 1);
#ifdef PATCHES
    start_a[i] = patch_start(row);
#else
    start_a[i] = a_turned ? row : row * p.k;
#endif
  }
  [[unroll]] for (uint i = 0; i < loads_w; ++i) {
    const uint row = min(first_column + share_row(i, w_turned, tile_n), p.n - 1);
    start_w[i] = w_turned ? row : source_of(row) * p.k;
  }
#ifdef ROUNDED
  const float factor = scaled ? half_range_factor(largest) : 1.0;
#endif

  // Step number i of the slice is fetched to set i % ahead, and has left it when step i + ahead is.
  Eight next_a[ahead * loads_a], next_w[ahead * loads_w];
#define FETCH_STEP(set, k)                                                                     \
  {                                                                                            \
    [[unroll]] for (uint i = 0; i < loads_a; ++i) {                                            \
      next_a[(set)*loads_a + i] = fetch_a(start_a[i], (k) + 8 * share_eight(i, a_turned, tile_m)); \
    }                                                                                          \
    [[unroll]] for (uint i = 0; i < loads_w; ++i) {                                            \
      next_w[(set)*loads_w + i] = fetch_w(start_w[i], (k) + 8 * share_eight(i, w_turned, tile_n)); \
    }                                                                                          \
  }
#define PUT_STEP(set, place)                                                                                     \
  {                                                                                                              \
    [[unroll]] for (uint i = 0; i < loads_a; ++i) {                                                              \
      if (items_a % threads == 0 || thread + i * threads < items_a) {                                            \
        memory[(place) + share_place(i, a_turned, tile_m)] = packed(next_a[(set)*loads_a + i], factor);          \
      }                                                                                                          \
    }                                                                                                            \
    [[unroll]] for (uint i = 0; i < loads_w; ++i) {                                                              \
      if (items_w % threads == 0 || thread + i * threads < items_w) {                                            \
        memory[(place) + tile_of_w + share_place(i, w_turned, tile_n)] = packed(next_w[(set)*loads_w + i], 1.0); \
      }                                                                                                          \
    }                                                                                                            \
  }

  Sum sums[matrices_m * matrices_n];
  [[unroll]] for (uint i = 0; i < matrices_m * matrices_n; ++i) sums[i] = Sum(0.0);

#define MULTIPLY_MATRICES(place, kk)                                                                            \
  {                                                                                                             \
    coopmat<float16_t, gl_ScopeSubgroup, matrix_m, matrix_k, gl_MatrixUseA> rows[matrices_m];                   \
    [[unroll]] for (uint i = 0; i < matrices_m; ++i) {                                                          \
      coopMatLoad(rows[i], memory, (place) + (subgroup_row + i * matrix_m) * pitch + (kk) / 8, pitch,           \
                  gl_CooperativeMatrixLayoutRowMajor);                                                          \
    }                                                                                                           \
    [[unroll]] for (uint j = 0; j < matrices_n; ++j) {                                                          \
      coopmat<float16_t, gl_ScopeSubgroup, matrix_k, matrix_n, gl_MatrixUseB> columns;                          \
      coopMatLoad(columns, memory, (place) + tile_of_w + (subgroup_column + j * matrix_n) * pitch + (kk) / 8,   \
                  pitch, gl_CooperativeMatrixLayoutColumnMajor);                                                \
      [[unroll]] for (uint i = 0; i < matrices_m; ++i) {                                                        \
        sums[i * matrices_n + j] = coopMatMulAdd(rows[i], columns, sums[i * matrices_n + j]);                   \
      }                                                                                                         \
    }                                                                                                           \
  }
#define MULTIPLY_STEP(place)                                                                                    \
  if (rolled) {                                                                                                 \
    [[dont_unroll]] for (uint kk = 0; kk < step_k; kk += matrix_k) MULTIPLY_MATRICES(place, kk)                 \
  } else {                                                                                                      \
    [[unroll]] for (uint kk = 0; kk < step_k; kk += matrix_k) MULTIPLY_MATRICES(place, kk)                      \
  }

  FETCH_STEP(0, begin)
  if (ahead > 1 && begin + step_k < end) FETCH_STEP(1 % ahead, begin + step_k)
  if (ahead > 2 && begin + 2 * step_k < end) FETCH_STEP(2 % ahead, begin + 2 * step_k)
  PUT_STEP(0, 0)
  barrier();
  uint place = 0;
#define STEP(set)                                                       \
  {                                                                     \
    if (k + ahead * step_k < end) FETCH_STEP(set, k + ahead * step_k)   \
    MULTIPLY_STEP(place)                                                \
    if (buffers == 1) barrier();                                        \
    if (buffers == 2) place = buffer_size - place;                      \
    if (k + step_k < end) PUT_STEP(((set) + 1) % ahead, place)          \
    barrier();                                                          \
  }
  [[dont_unroll]] for (uint k = begin; k < end; k += step_k) {
    STEP(0)
    if (ahead > 1) {
      k += step_k;
      if (k >= end) break;
      STEP(1 % ahead)
    }
    if (ahead > 2) {
      k += step_k;
      if (k >= end) break;
      STEP(2 % ahead)
    }
  }

#ifdef ROUNDED
  if (scaled) {
    const float undo = half_range_undo(largest);
    [[unroll]] for (uint i = 0; i < matrices_m * matrices_n; ++i) sums[i] = sums[i] * undo;
  }
#endif

  const uint row_of_subgroup = first_row + subgroup_row;
  const uint column_of_subgroup = first_column + subgroup_column;
#ifdef DIRECT
  // All subgroups or none: behind the return of some, Mesa's software driver leaves strips of others unwritten.
  if (store_directly && first_row + tile_m <= p.m && first_column + tile_n <= p.n) {
    [[unroll]] for (uint i = 0; i < matrices_m; ++i) {
      [[unroll]] for (uint j = 0; j < matrices_n; ++j) {
        const uint at =
            first_out + (row_of_subgroup + i * matrix_m) * p.n + column_of_subgroup + j * matrix_n;
        coopMatStore(sums[i * matrices_n + j], c, at / 4, p.n / 4, gl_CooperativeMatrixLayoutRowMajor);
      }
    }
    return;
  }
#endif

#ifdef BY_ELEMENT
  [[unroll]] for (uint i = 0; i < matrices_m; ++i) {
    [[unroll]] for (uint j = 0; j < matrices_n; ++j) {
      Sum stored;
      coopMatPerElementNV(stored, sums[i * matrices_n + j], store_element, row_of_subgroup + i * matrix_m,
                          column_of_subgroup + j * matrix_n);
    }
  }
#else
  // One strip at a time, picked by comparing so that the array of accumulators is only ever indexed by
  // constants (else drivers move it to memory) while the epilogue's code exists once.
  const uint strip = gl_SubgroupID * strip_size;
#define STORE_STRIP(s)                                                                      \
  {                                                                                         \
    [[unroll]] for (uint i = 0; i < matrices_m; ++i) {                                      \
      if (i == (s)) {                                                                       \
        [[unroll]] for (uint j = 0; j < matrices_n; ++j) {                                  \
          coopMatStore(sums[i * matrices_n + j], memory, strip + j * (matrix_n / 4), strip_pitch, \
                       gl_CooperativeMatrixLayoutRowMajor);                                 \
        }                                                                                   \
      }                                                                                     \
    }                                                                                       \
    subgroupBarrier();                                                                      \
  }
  if (keep_columns) {
    const uint quad = gl_SubgroupInvocationID % strip_width4, quad_row = gl_SubgroupInvocationID / strip_width4;
    const uint column = column_of_subgroup + quad * 4;
    const bool inside = column < p.n;
    const vec4 bias = inside ? bias4_at(column) : vec4(0.0), scale = inside ? scale4_of(column) : vec4(0.0);
    [[dont_unroll]] for (uint s = 0; s < matrices_m; ++s) {
      const uint first = row_of_subgroup + s * matrix_m + quad_row;
      vec4 residuals[quads];  // all are on their way while the strip is
      [[unroll]] for (uint i = 0; i < quads; ++i) {
        const uint row = first + i * rows_at_once;
        residuals[i] = inside && row < p.m ? residual4_of(row * p.n + column) : vec4(0.0);
      }
      STORE_STRIP(s)
      [[unroll]] for (uint i = 0; i < quads; ++i) {
        const uint row = first + i * rows_at_once;
        const vec4 sum = uintBitsToFloat(memory[strip + (quad_row + i * rows_at_once) * strip_pitch + quad]);
#ifdef ROTARY
        if (inside && row < p.m) store_rotary4(sum, bias, row, column, p.n);
#else
        if (inside && row < p.m)
          c[(first_out + row * p.n + column) >> 2] = OUT4(epilogue4(sum, bias, scale, residuals[i]));
#endif
      }
      subgroupBarrier();
    }
    return;
  }
  [[dont_unroll]] for (uint s = 0; s < matrices_m; ++s) {
    STORE_STRIP(s)
    for (uint e = gl_SubgroupInvocationID; e < matrix_m * strip_width4; e += subgroup_size) {
      const uint row = row_of_subgroup + s * matrix_m + e / strip_width4;
      const uint column = column_of_subgroup + e % strip_width4 * 4;
      if (row >= p.m || column >= p.n) continue;
      const vec4 sum = uintBitsToFloat(memory[strip + e / strip_width4 * strip_pitch + e % strip_width4]);
#ifdef ROTARY
      store_rotary4(sum, bias4_at(column), row, column, p.n);
#else
      const uint at = row * p.n + column, out_at = first_out + at;
      if (by_four) {
        c[out_at >> 2] = OUT4(epilogue4(sum, column, at));
      } else {
        for (uint i = 0; i < 4 && column + i < p.n; ++i) {
          c[(out_at + i) >> 2][(out_at + i) & 3] = store_as(OUT, epilogue(sum[i], column + i, at + i));
        }
      }
#endif
    }
    subgroupBarrier();
  }
#endif
}
