//! variant f16 T=float16_t OUT4=f16vec4 needs=coopmat,fp16,storage16,subgroup_control
//! variant rounded ROUNDED=1 T=float OUT4=vec4 needs=coopmat,fp16,subgroup_control
// softmax(scale * Q K^T) V with an online softmax, both products on the matrix units
// (VK_KHR_cooperative_matrix): f16 times f16, summed in f32; statistics are f32.
//
//   grid        blocks of block_q queries of one head of one batch; neighbours share keys and values
//   workgroup   walks the keys, block_k at a time. Keys and values of a step lie in shared memory as f16, padded
//               with zeros to whole matrices; those of the next step are on their way to registers meanwhile.
//               Rows are padded by 16 bytes, so that eight of them begin in eight groups of banks
//   subgroup    has blocks_m * matrix_m queries to itself: their scores, then weights, and their sums of values.
//               It needs no barrier but those around keys and values
//   softmax     which lane holds which score is not known, so they go through a patch of shared memory of the
//               subgroup's own: scores in, weights as f16 out, in the same place. sharers lanes share a row
//   rescaling   a row's correction is written to the patch once for each column of a matrix and multiplied
//               element by element; left out while no maximum of the subgroup's rows changes
//
// A score of -inf has weight 0; a row of nothing but -inf is NaN, as is one with a NaN or +inf score: the
// maximum may or may not notice a NaN, but the score's distance from it is NaN, and with that the sum which
// everything is divided by.
//
// The rounded variant is for training: Q, K, V and the result are f32. What is fetched becomes f16 where it is put into
// shared memory: rounding it sooner would wait for it in front of the step that hides it.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "attention/attention.h"

// Q, K and V by eight where their rows allow it, else by single values. The other ones are not bound.
layout(push_constant) uniform Push { AttentionParams p; };
#ifdef ROUNDED
#include "lib/eight.glsl"
#else
#define Eight uvec4
#define packed(eight) (eight)
#endif
layout(set = 0, binding = 0) readonly buffer Q8 { Eight q8[]; };
layout(set = 0, binding = 1) readonly buffer K8 { Eight k8[]; };
layout(set = 0, binding = 2) readonly buffer V8 { Eight v8[]; };
layout(set = 0, binding = 3) writeonly buffer Out { OUT4 result[]; };
layout(set = 0, binding = 4) writeonly buffer Lse { float lse[]; };
layout(set = 0, binding = 5) readonly buffer Q { T q[]; };
layout(set = 0, binding = 6) readonly buffer K { T k[]; };
layout(set = 0, binding = 7) readonly buffer V { T v[]; };
layout(set = 0, binding = 8) readonly buffer Bias { float bias[]; };

layout(local_size_x_id = 0) in;  // subgroups * subgroup_size
layout(constant_id = 1) const uint subgroup_size = 32;  // the pipeline requires this size and full subgroups
layout(constant_id = 2) const uint matrix_m = 16;
layout(constant_id = 3) const uint matrix_n = 16;  // a multiple of 8, as is matrix_k
layout(constant_id = 4) const uint matrix_k = 16;
layout(constant_id = 5) const uint subgroups = 4;
layout(constant_id = 6) const uint blocks_m = 1;
layout(constant_id = 7) const uint block_k = 32;  // whole matrices, and eight for each lane that shares a row
layout(constant_id = 8) const uint key_width = 64;
layout(constant_id = 9) const uint value_width = 64;
layout(constant_id = 10) const bool by_eight = false;      // every row of every head is whole groups of 16 bytes
layout(constant_id = 11) const bool keep_queries = false;  // in registers, else in shared memory
layout(constant_id = 12) const bool store_lse = false;
layout(constant_id = 13) const bool bias_table = false;  // of scores: see lib/relative_bias.glsl
layout(constant_id = 14) const uint bias_height = 1;
layout(constant_id = 15) const uint bias_width = 1;
layout(constant_id = 16) const uint bias_first = 0;
layout(constant_id = 17) const bool bias_rows = false;
#include "lib/relative_bias.glsl"

const uint threads = subgroups * subgroup_size;
const uint rows = blocks_m * matrix_m;  // of a subgroup
const uint block_q = subgroups * rows;
const uint depths = (key_width + matrix_k - 1) / matrix_k;
const uint columns = (value_width + matrix_n - 1) / matrix_n;
const uint score_columns = block_k / matrix_n;
const uint rows_each = rows > subgroup_size ? rows / subgroup_size : 1;
const uint sharers = rows > subgroup_size ? 1 : subgroup_size / rows;

// Shared memory, counted in 16 bytes.
const uint key_width8 = depths * matrix_k / 8;
const uint key_pitch = key_width8 + 1;
const uint value_width8 = columns * matrix_n / 8;
const uint value_pitch = value_width8 + 1;
const uint factors_at = block_k / 8;  // in a row of a patch, behind the weights
const uint patch_width = block_k / 4 > factors_at + matrix_n / 4 ? block_k / 4 : factors_at + matrix_n / 4;
const uint patch_pitch = patch_width | 1;
const uint values_at = block_k * key_pitch;
const uint patches_at = values_at + block_k * value_pitch;
const uint patches_end = patches_at + block_q * patch_pitch;
// The queries lie at the start until they are in registers, or behind everything for good.
const uint queries_at = keep_queries ? 0 : patches_end;
const uint queries_end = queries_at + block_q * key_pitch;
shared uvec4 memory[queries_end > patches_end ? queries_end : patches_end];

const uint items_k = block_k * key_width8;
const uint items_v = block_k * value_width8;
const uint loads_k = (items_k + threads - 1) / threads;
const uint loads_v = (items_v + threads - 1) / threads;

#define minus_infinity uintBitsToFloat(0xff800000u)
#define ln_2 0.69314718055994531
#define log2_e 1.4426950408889634

// Eight values from column on, of a row that starts at `start`; zeros from the width on.
#ifdef ROUNDED
const Eight no_eight = Eight(vec4(0.0), vec4(0.0));
#define FETCH(NAME, EIGHTS, VALUES, WIDTH)                                                  \
  Eight NAME(uint start, uint column) {                                                     \
    if (by_eight) return column < WIDTH ? EIGHTS[(start + column) >> 3] : no_eight;         \
    Eight eight;                                                                            \
    [[unroll]] for (uint i = 0; i < 4; ++i) {                                               \
      eight.low[i] = column + i < WIDTH ? VALUES[start + column + i] : 0.0;                 \
      eight.high[i] = column + 4 + i < WIDTH ? VALUES[start + column + 4 + i] : 0.0;        \
    }                                                                                       \
    return eight;                                                                           \
  }
#else
const uvec4 no_eight = uvec4(0);
#define FETCH(NAME, EIGHTS, VALUES, WIDTH)                                              \
  uvec4 NAME(uint start, uint column) {                                                 \
    if (by_eight) return column < WIDTH ? EIGHTS[(start + column) >> 3] : no_eight;     \
    const float16_t zero = float16_t(0.0);                                              \
    uvec4 eight;                                                                        \
    [[unroll]] for (uint i = 0; i < 4; ++i) {                                           \
      const uint c = column + 2 * i;                                                    \
      const float16_t low = c < WIDTH ? VALUES[start + c] : zero;                       \
      const float16_t high = c + 1 < WIDTH ? VALUES[start + c + 1] : zero;              \
      eight[i] = packFloat2x16(f16vec2(low, high));                                     \
    }                                                                                   \
    return eight;                                                                       \
  }
#endif
FETCH(fetch_q, q8, q, key_width)
FETCH(fetch_k, k8, k, key_width)
FETCH(fetch_v, v8, v, value_width)

#define Queries coopmat<float16_t, gl_ScopeSubgroup, matrix_m, matrix_k, gl_MatrixUseA>
#define Factors coopmat<float16_t, gl_ScopeSubgroup, matrix_k, matrix_n, gl_MatrixUseB>
#define Sum coopmat<float, gl_ScopeSubgroup, matrix_m, matrix_n, gl_MatrixUseAccumulator>

// Writes a number of each row beside the row's weights, as often as a matrix has columns.
void put_row_factor(uint row_at, float factor) {
  [[unroll]] for (uint i = 0; i < matrix_n / 4; ++i) memory[row_at + factors_at + i] = floatBitsToUint(vec4(factor));
}

void main() {
  const uint work = linear_group();
  if (work >= p.blocks) return;
  const uint query_blocks = (p.queries + block_q - 1) / block_q;
  const uint head = work / query_blocks % p.heads;
  const uint batch = work / query_blocks / p.heads;
  const uint first_query = work % query_blocks * block_q;
  const uint thread = gl_LocalInvocationIndex;
  const uint lane = gl_SubgroupInvocationID;

  const uint q_start = batch * p.queries * p.q_stride + p.q_offset + head * key_width;
  const uint k_start = batch * p.keys * p.k_stride + p.k_offset + head * key_width;
  const uint v_start = batch * p.keys * p.v_stride + p.v_offset + head * value_width;

  Eight next_k[loads_k], next_v[loads_v];
  // Keys past the end are the last one again: their scores are replaced. Values past the end are zero: 0 * NaN
  // would not vanish.
#define FETCH_STEP(FIRST)                                                                                    \
  {                                                                                                          \
    [[unroll]] for (uint i = 0; i < loads_k; ++i) {                                                          \
      const uint e = thread + i * threads;                                                                   \
      next_k[i] = fetch_k(k_start + min((FIRST) + e / key_width8, p.keys - 1) * p.k_stride, e % key_width8 * 8); \
    }                                                                                                        \
    [[unroll]] for (uint i = 0; i < loads_v; ++i) {                                                          \
      const uint e = thread + i * threads;                                                                   \
      const uint key = (FIRST) + e / value_width8;                                                           \
      next_v[i] = key < p.keys ? fetch_v(v_start + key * p.v_stride, e % value_width8 * 8) : no_eight;       \
    }                                                                                                        \
  }

  // Queries past the end are the last one again: computed, not stored.
  for (uint e = thread; e < block_q * key_width8; e += threads) {
    const uint row = min(first_query + e / key_width8, p.queries - 1);
    memory[queries_at + e / key_width8 * key_pitch + e % key_width8] =
        packed(fetch_q(q_start + row * p.q_stride, e % key_width8 * 8));
  }
  FETCH_STEP(0)
  barrier();

  const uint queries = queries_at + gl_SubgroupID * rows * key_pitch;
  Queries kept[keep_queries ? blocks_m * depths : 1];
  if (keep_queries) {
    [[unroll]] for (uint i = 0; i < blocks_m; ++i) {
      [[unroll]] for (uint d = 0; d < depths; ++d) {
        coopMatLoad(kept[keep_queries ? i * depths + d : 0], memory, queries + i * matrix_m * key_pitch + d * (matrix_k / 8),
                    key_pitch, gl_CooperativeMatrixLayoutRowMajor);
      }
    }
    barrier();
  }

  const uint own_patch = patches_at + gl_SubgroupID * rows * patch_pitch;
  // The scale is positive and turns scores to exponents of 2: a row's maximum needs it once, and each score one
  // multiply-add.
  float maximum[rows_each], total[rows_each];  // of exponents; of this lane's columns
  [[unroll]] for (uint r = 0; r < rows_each; ++r) {
    maximum[r] = minus_infinity;
    total[r] = 0.0;
  }
  Sum mixed[blocks_m * columns];
  [[unroll]] for (uint i = 0; i < blocks_m * columns; ++i) mixed[i] = Sum(0.0);

  [[dont_unroll]] for (uint first_key = 0; first_key < p.keys; first_key += block_k) {
    [[unroll]] for (uint i = 0; i < loads_k; ++i) {
      const uint e = thread + i * threads;
      if (items_k % threads == 0 || e < items_k) {
        memory[e / key_width8 * key_pitch + e % key_width8] = packed(next_k[i]);
      }
    }
    [[unroll]] for (uint i = 0; i < loads_v; ++i) {
      const uint e = thread + i * threads;
      if (items_v % threads == 0 || e < items_v) {
        memory[values_at + e / value_width8 * value_pitch + e % value_width8] = packed(next_v[i]);
      }
    }
    barrier();
    if (first_key + block_k < p.keys) FETCH_STEP(first_key + block_k)

    Sum scores[blocks_m * score_columns];
    [[unroll]] for (uint i = 0; i < blocks_m * score_columns; ++i) scores[i] = Sum(0.0);
#define MULTIPLY_DEPTH(d, QUERIES)                                                                          \
  [[unroll]] for (uint j = 0; j < score_columns; ++j) {                                                     \
    Factors keys;                                                                                           \
    coopMatLoad(keys, memory, j * matrix_n * key_pitch + (d) * (matrix_k / 8), key_pitch,                   \
                gl_CooperativeMatrixLayoutColumnMajor);                                                     \
    [[unroll]] for (uint i = 0; i < blocks_m; ++i) {                                                        \
      scores[i * score_columns + j] = coopMatMulAdd(QUERIES, keys, scores[i * score_columns + j]);          \
    }                                                                                                       \
  }
    if (keep_queries) {
      [[unroll]] for (uint d = 0; d < depths; ++d) { MULTIPLY_DEPTH(d, kept[keep_queries ? i * depths + d : 0]) }
    } else {
      [[dont_unroll]] for (uint d = 0; d < depths; ++d) {
        Queries read[blocks_m];
        [[unroll]] for (uint i = 0; i < blocks_m; ++i) {
          coopMatLoad(read[i], memory, queries + i * matrix_m * key_pitch + d * (matrix_k / 8), key_pitch,
                      gl_CooperativeMatrixLayoutRowMajor);
        }
        MULTIPLY_DEPTH(d, read[i])
      }
    }
    [[unroll]] for (uint i = 0; i < blocks_m; ++i) {
      [[unroll]] for (uint j = 0; j < score_columns; ++j) {
        coopMatStore(scores[i * score_columns + j], memory, own_patch + i * matrix_m * patch_pitch + j * (matrix_n / 4),
                     patch_pitch, gl_CooperativeMatrixLayoutRowMajor);
      }
    }
    subgroupBarrier();

    // Every lane reads its scores, eight neighbours at a time, before any writes a weight over them.
    const bool last = first_key + block_k > p.keys;
    float correction[rows_each];
    vec4 part[rows_each * block_k / 4 / sharers];
    bool rescale = false;
    [[unroll]] for (uint r = 0; r < rows_each; ++r) {
      const uint row_at = own_patch + (lane % rows + r * subgroup_size) * patch_pitch;
      float highest = minus_infinity;
      [[unroll]] for (uint i = 0; i < block_k / 4 / sharers; ++i) {
        const uint four = (lane / rows + i / 2 * sharers) * 2 + i % 2;
        vec4 score = uintBitsToFloat(memory[row_at + four]);
        if (bias_table || bias_rows) {
          const uint query = min(first_query + gl_SubgroupID * rows + lane % rows + r * subgroup_size, p.queries - 1);
          const uint line = (batch * p.heads + head) * p.queries + query;
          vec4 added;
          [[unroll]] for (uint s = 0; s < 4; ++s) {
            const uint key = min(first_key + four * 4 + s, p.keys - 1);
            added[s] = bias_table ? bias[bias_row(query, key) * p.heads + head] : bias_of_key(bias, line, key);
          }
          score += added * (log2_e / p.scale);  // scores aren't scaled yet
        }
        if (last) {
          [[unroll]] for (uint s = 0; s < 4; ++s) {
            if (first_key + four * 4 + s >= p.keys) score[s] = minus_infinity;
          }
        }
        highest = max(highest, max(max(score.x, score.y), max(score.z, score.w)));
        part[r * (block_k / 4 / sharers) + i] = score;
      }
      [[unroll]] for (uint mask = rows; mask < subgroup_size; mask *= 2) {
        highest = max(highest, subgroupShuffleXor(highest, mask));
      }
      const float before = maximum[r];
      maximum[r] = max(before, highest * p.scale);
      // While all scores are -inf, any finite number in place of the maximum gives the right weights: zeros.
      const float shift = maximum[r] == minus_infinity ? 0.0 : maximum[r];
      correction[r] = exp2(before - shift);
      rescale = rescale || correction[r] != 1.0;
      float sum = 0.0, distances = 0.0;
      [[unroll]] for (uint i = 0; i < block_k / 4 / sharers; ++i) {
        const vec4 distance = fma(part[r * (block_k / 4 / sharers) + i], vec4(p.scale), vec4(-shift));
        const vec4 weight = exp2(distance);
        distances += (distance.x + distance.y) + (distance.z + distance.w);
        sum += (weight.x + weight.y) + (weight.z + weight.w);
        part[r * (block_k / 4 / sharers) + i] = weight;
      }
      total[r] = nan_or(distances, total[r] * correction[r] + sum);
    }
    rescale = subgroupAny(rescale);
    subgroupBarrier();
    [[unroll]] for (uint r = 0; r < rows_each; ++r) {
      const uint row_at = own_patch + (lane % rows + r * subgroup_size) * patch_pitch;
      [[unroll]] for (uint i = 0; i < block_k / 8 / sharers; ++i) {
        const vec4 low = part[r * (block_k / 4 / sharers) + 2 * i], high = part[r * (block_k / 4 / sharers) + 2 * i + 1];
        memory[row_at + lane / rows + i * sharers] =
            uvec4(packFloat2x16(f16vec2(low.xy)), packFloat2x16(f16vec2(low.zw)), packFloat2x16(f16vec2(high.xy)),
                  packFloat2x16(f16vec2(high.zw)));
      }
      if (rescale && lane / rows == 0) put_row_factor(row_at, correction[r]);
    }
    subgroupBarrier();

    if (rescale) {
      [[unroll]] for (uint i = 0; i < blocks_m; ++i) {
        Sum factors;
        coopMatLoad(factors, memory, own_patch + i * matrix_m * patch_pitch + factors_at, patch_pitch,
                    gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint j = 0; j < columns; ++j) mixed[i * columns + j] = mixed[i * columns + j] * factors;
      }
    }
    [[unroll]] for (uint kk = 0; kk < block_k; kk += matrix_k) {
      Queries weights[blocks_m];
      [[unroll]] for (uint i = 0; i < blocks_m; ++i) {
        coopMatLoad(weights[i], memory, own_patch + i * matrix_m * patch_pitch + kk / 8, patch_pitch,
                    gl_CooperativeMatrixLayoutRowMajor);
      }
      [[unroll]] for (uint j = 0; j < columns; ++j) {
        Factors values;
        coopMatLoad(values, memory, values_at + kk * value_pitch + j * (matrix_n / 8), value_pitch,
                    gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint i = 0; i < blocks_m; ++i) {
          mixed[i * columns + j] = coopMatMulAdd(weights[i], values, mixed[i * columns + j]);
        }
      }
    }
    barrier();
  }

  const uint first_row = first_query + gl_SubgroupID * rows;
  [[unroll]] for (uint r = 0; r < rows_each; ++r) {
    const uint row = lane % rows + r * subgroup_size;
    [[unroll]] for (uint mask = rows; mask < subgroup_size; mask *= 2) total[r] += subgroupShuffleXor(total[r], mask);
    if (lane / rows == 0) {
      put_row_factor(own_patch + row * patch_pitch, 1.0 / total[r]);
      if (store_lse && first_row + row < p.queries) {
        lse[(batch * p.heads + head) * p.queries + first_row + row] = nan_or(total[r], maximum[r] * ln_2 + log(total[r]));
      }
    }
  }
  subgroupBarrier();
  [[unroll]] for (uint i = 0; i < blocks_m; ++i) {
    Sum factors;
    coopMatLoad(factors, memory, own_patch + i * matrix_m * patch_pitch + factors_at, patch_pitch,
                gl_CooperativeMatrixLayoutRowMajor);
    [[unroll]] for (uint j = 0; j < columns; ++j) mixed[i * columns + j] = mixed[i * columns + j] * factors;
  }

  // As many columns at a time as the patch is wide.
  [[unroll]] for (uint first = 0; first < columns; first += score_columns) {
    subgroupBarrier();
    [[unroll]] for (uint j = 0; j < score_columns; ++j) {
      if (first + j < columns) {
        [[unroll]] for (uint i = 0; i < blocks_m; ++i) {
          coopMatStore(mixed[first + j < columns ? i * columns + first + j : 0], memory,
                       own_patch + i * matrix_m * patch_pitch + j * (matrix_n / 4), patch_pitch,
                       gl_CooperativeMatrixLayoutRowMajor);
        }
      }
    }
    subgroupBarrier();
    for (uint e = lane; e < rows * (block_k / 4); e += subgroup_size) {
      const uint row = e / (block_k / 4);
      const uint column = first * matrix_n + e % (block_k / 4) * 4;
      if (first_row + row >= p.queries || column >= value_width) continue;
      const OUT4 mean = OUT4(uintBitsToFloat(memory[own_patch + row * patch_pitch + e % (block_k / 4)]));
      const uint at = ((batch * p.queries + first_row + row) * p.heads + head) * value_width + column;
      if (value_width % 4 == 0) {
        result[at >> 2] = mean;
      } else {
        for (uint s = 0; s < 4 && column + s < value_width; ++s) result[(at + s) >> 2][(at + s) & 3] = mean[s];
      }
    }
  }
}
