//! variant f16 needs=coopmat,fp16,storage16,subgroup_control
// softmax(scale * Q K^T) V with an online softmax, both products on the matrix units
// (VK_KHR_cooperative_matrix), and nothing between them through shared memory: f16 times f16, summed in f32;
// statistics are f32. For devices whose matrices are known to lie in lanes as Capabilities::matrix_sums says.
//
//   grid        blocks of block_q queries of one head of one batch; neighbours share keys and values
//   workgroup   walks the keys, block_k at a time. Keys and values of a step lie in shared memory as f16, padded
//               with zeros to whole matrices, values transposed; those of the next step are on their way to
//               registers meanwhile
//   subgroup    has blocks_n * matrix_n queries to itself, each a column: S^T = K Q^T, then O^T = V^T P^T
//   lane        holds elements of one column of a sum, and column_lanes of them share it. So the statistics of a
//               query are numbers of a lane, a maximum is found among its own scores, then among those lanes, and
//               rescaling multiplies what the lane holds
//   weights     are the right operand of the second product: in the lane's own registers but for their type, or
//               one exchange away. Keys stand in an operand as the sums have them, and columns of values in a sum's
//               rows so that a lane's are neighbours in the result: values are staged in that order
//
// A score of -inf has weight 0; a row of nothing but -inf is NaN, as is one with a NaN or +inf score: the
// maximum may or may not notice a NaN, but the score's distance from it is NaN, and with that the sum which
// everything is divided by.
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
layout(set = 0, binding = 0) readonly buffer Q8 { uvec4 q8[]; };
layout(set = 0, binding = 1) readonly buffer K8 { uvec4 k8[]; };
layout(set = 0, binding = 2) readonly buffer V8 { uvec4 v8[]; };
layout(set = 0, binding = 3) writeonly buffer Out { f16vec4 result[]; };
layout(set = 0, binding = 4) writeonly buffer Lse { float lse[]; };
layout(set = 0, binding = 5) readonly buffer Q { float16_t q[]; };
layout(set = 0, binding = 6) readonly buffer K { float16_t k[]; };
layout(set = 0, binding = 7) readonly buffer V { float16_t v[]; };

layout(local_size_x_id = 0) in;  // subgroups * subgroup_size
layout(constant_id = 1) const uint subgroup_size = 32;  // the pipeline requires this size and full subgroups
layout(constant_id = 2) const uint matrix_m = 16;
layout(constant_id = 3) const uint matrix_n = 16;
layout(constant_id = 4) const uint matrix_k = 16;  // matrix_m
layout(constant_id = 5) const uint subgroups = 4;
layout(constant_id = 6) const uint blocks_n = 1;
layout(constant_id = 7) const uint block_k = 32;  // whole operands
layout(constant_id = 8) const uint key_width = 64;
layout(constant_id = 9) const uint value_width = 64;
layout(constant_id = 10) const bool by_eight = false;  // every row of every head is whole groups of 16 bytes
layout(constant_id = 11) const bool alternate = false;   // as MatrixSums::alternate
layout(constant_id = 12) const bool transposed = false;  // as MatrixSums::transposed
layout(constant_id = 13) const bool store_lse = false;

const uint threads = subgroups * subgroup_size;
const uint queries_each = blocks_n * matrix_n;  // of a subgroup
const uint block_q = subgroups * queries_each;
const uint column_lanes = subgroup_size / matrix_n;
const uint held = matrix_m / column_lanes;  // of a sum, by a lane
const uint depths = (key_width + matrix_k - 1) / matrix_k;
const uint value_rows = (value_width + matrix_m - 1) / matrix_m;
const uint score_rows = block_k / matrix_m;

// Shared memory, counted in 4 bytes. Rows are padded by 16 bytes, so that eight of them begin in eight groups of
// banks; and the values' matrices, since lanes that store to one row of several would meet in one bank.
const uint key_width8 = depths * matrix_k / 8;
const uint key_pitch = 4 * (key_width8 + 1);
const uint value_width8 = (value_rows * matrix_m + 7) / 8;
const uint value_pitch = block_k / 2 + 4;
const uint value_matrix = matrix_m * value_pitch + 4;
const uint values_at = block_k * key_pitch;
const uint values_end = values_at + (value_width8 * 8 + matrix_m - 1) / matrix_m * value_matrix;
const uint queries_end = block_q * key_pitch;  // until they are in registers
shared uint memory[queries_end > values_end ? queries_end : values_end];

const uint key_pairs = block_k / 2;
const uint items_k = block_k * key_width8;
const uint items_v = key_pairs * value_width8;  // of two keys each
const uint loads_k = (items_k + threads - 1) / threads;
const uint loads_v = (items_v + threads - 1) / threads;
// Whether an invocation's further pieces go into shared memory at even distances.
const bool even_k = threads % key_width8 == 0;
const bool even_v = threads % key_pairs == 0 && threads / key_pairs * 8 % matrix_m == 0;

#define minus_infinity uintBitsToFloat(0xff800000u)
#define ln_2 0.69314718055994531

// Rows are counted in what they are fetched by.
const uint unit = by_eight ? 8 : 1;

// Eight values at `at`, which are a row's from `column` on; zeros from the width on.
#define FETCH(NAME, EIGHTS, VALUES, WIDTH, WIDTH8)                                       \
  uvec4 NAME(uint at, uint column) {                                                     \
    if (by_eight) return WIDTH8 * 8 == WIDTH || column < WIDTH ? EIGHTS[at] : uvec4(0);  \
    const float16_t zero = float16_t(0.0);                                               \
    uvec4 eight;                                                                         \
    [[unroll]] for (uint i = 0; i < 4; ++i) {                                            \
      const float16_t low = column + 2 * i < WIDTH ? VALUES[at + 2 * i] : zero;          \
      const float16_t high = column + 2 * i + 1 < WIDTH ? VALUES[at + 2 * i + 1] : zero; \
      eight[i] = packFloat2x16(f16vec2(low, high));                                      \
    }                                                                                    \
    return eight;                                                                        \
  }
FETCH(fetch_q, q8, q, key_width, key_width8)
FETCH(fetch_k, k8, k, key_width, key_width8)
FETCH(fetch_v, v8, v, value_width, value_width8)

#define Left coopmat<float16_t, gl_ScopeSubgroup, matrix_m, matrix_k, gl_MatrixUseA>
#define Right coopmat<float16_t, gl_ScopeSubgroup, matrix_k, matrix_n, gl_MatrixUseB>
#define Sum coopmat<float, gl_ScopeSubgroup, matrix_m, matrix_n, gl_MatrixUseAccumulator>

// Of a sum's column, whose elements are counted lane by lane: an element's row.
uint row_of(uint element) { return alternate ? element % held * column_lanes + element / held : element; }
// The key that stands at a place of a step's operands: as in the sums that these are made of.
uint key_at(uint place) { return place - place % matrix_k + row_of(place % matrix_k); }

// Where a piece of work of an invocation goes in shared memory: eight values of a key, and of a pair of keys values
// of eight columns, `value_step` apart.
uint key_place(uint e) { return e / key_width8 * key_pitch + e % key_width8 * 4; }
uint value_place(uint e) {
  const uint column = e / key_pairs * 8;
  return values_at + column / matrix_m * value_matrix + row_of(column % matrix_m) * value_pitch + e % key_pairs;
}
uint value_step(uint s) { return s / matrix_m * value_matrix + row_of(s % matrix_m) * value_pitch; }

void put_eight(uint at, uvec4 eight) {
  [[unroll]] for (uint s = 0; s < 4; ++s) memory[at + s] = eight[s];
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
  const uint among = lane / matrix_n;  // the lanes of its column

  const uint q_stride = p.q_stride / unit, k_stride = p.k_stride / unit, v_stride = p.v_stride / unit;
  const uint q_start = batch * p.queries * q_stride + (p.q_offset + head * key_width) / unit;
  const uint k_start = batch * p.keys * k_stride + (p.k_offset + head * key_width) / unit;
  const uint v_start = batch * p.keys * v_stride + (p.v_offset + head * value_width) / unit;

  // Keys past the end are the last one again, and so are values until they are stored.
  const uint k_last = k_start + (p.keys - 1) * k_stride, v_last = v_start + (p.keys - 1) * v_stride;
  const uint v_high = (key_at(1) - key_at(0)) * v_stride;  // the second key of a pair
  uint k_at[loads_k], v_at[loads_v];
  [[unroll]] for (uint i = 0; i < loads_k; ++i) {
    const uint e = thread + i * threads;
    k_at[i] = k_start + e / key_width8 * k_stride + e % key_width8 * 8 / unit;
  }
  [[unroll]] for (uint i = 0; i < loads_v; ++i) {
    const uint e = thread + i * threads;
    v_at[i] = v_start + key_at(e % key_pairs * 2) * v_stride + e / key_pairs * 8 / unit;
  }
  uvec4 next_k[loads_k], next_low[loads_v], next_high[loads_v];
#define FETCH_STEP                                                                  \
  {                                                                                 \
    [[unroll]] for (uint i = 0; i < loads_k; ++i) {                                 \
      const uint column = (thread + i * threads) % key_width8 * 8;                  \
      next_k[i] = fetch_k(min(k_at[i], k_last + column / unit), column);            \
      k_at[i] += block_k * k_stride;                                                \
    }                                                                               \
    [[unroll]] for (uint i = 0; i < loads_v; ++i) {                                 \
      const uint column = (thread + i * threads) / key_pairs * 8;                   \
      next_low[i] = fetch_v(min(v_at[i], v_last + column / unit), column);          \
      next_high[i] = fetch_v(min(v_at[i] + v_high, v_last + column / unit), column);\
      v_at[i] += block_k * v_stride;                                                \
    }                                                                               \
  }

  // Queries past the end are the last one again: computed, not stored.
  for (uint e = thread; e < block_q * key_width8; e += threads) {
    const uint row = min(first_query + e / key_width8, p.queries - 1), column = e % key_width8 * 8;
    put_eight(key_place(e), fetch_q(q_start + row * q_stride + column / unit, column));
  }
  FETCH_STEP
  barrier();

  Right queries[blocks_n * depths];
  [[unroll]] for (uint i = 0; i < blocks_n; ++i) {
    [[unroll]] for (uint d = 0; d < depths; ++d) {
      coopMatLoad(queries[i * depths + d], memory,
                  (gl_SubgroupID * queries_each + i * matrix_n) * key_pitch + d * (matrix_k / 2), key_pitch,
                  gl_CooperativeMatrixLayoutColumnMajor);
    }
  }
  barrier();

  // The scale is positive and turns scores to exponents of 2: a query's maximum needs it once, and each score one
  // multiply-add.
  float maximum[blocks_n], total[blocks_n];  // of exponents; of what the lane holds
  Sum mixed[blocks_n * value_rows];
  [[unroll]] for (uint i = 0; i < blocks_n; ++i) {
    maximum[i] = minus_infinity;
    total[i] = 0.0;
    [[unroll]] for (uint r = 0; r < value_rows; ++r) mixed[i * value_rows + r] = Sum(0.0);
  }

  const uint key_put = key_place(thread), value_put = value_place(thread);
  [[dont_unroll]] for (uint first_key = 0; first_key < p.keys; first_key += block_k) {
    const bool last = first_key + block_k > p.keys;
    [[dont_flatten]] if (last) {
      // 0 * NaN would not vanish.
      [[unroll]] for (uint i = 0; i < loads_v; ++i) {
        const uint key = first_key + key_at((thread + i * threads) % key_pairs * 2);
        if (key >= p.keys) next_low[i] = uvec4(0);
        if (key + (key_at(1) - key_at(0)) >= p.keys) next_high[i] = uvec4(0);
      }
    }
    [[unroll]] for (uint i = 0; i < loads_k; ++i) {
      const uint e = thread + i * threads;
      if (items_k % threads == 0 || e < items_k) {
        put_eight(even_k ? key_put + i * (threads / key_width8 * key_pitch) : key_place(e), next_k[i]);
      }
    }
    [[unroll]] for (uint i = 0; i < loads_v; ++i) {
      const uint e = thread + i * threads;
      if (items_v % threads == 0 || e < items_v) {
        const uint place = even_v ? value_put + i * (threads / key_pairs * 8 / matrix_m * value_matrix) : value_place(e);
        [[unroll]] for (uint s = 0; s < 8; ++s) {
          const f16vec2 low = unpackFloat2x16(next_low[i][s / 2]), high = unpackFloat2x16(next_high[i][s / 2]);
          memory[place + value_step(s)] = packFloat2x16(f16vec2(low[s % 2], high[s % 2]));
        }
      }
    }
    barrier();
    if (first_key + block_k < p.keys) FETCH_STEP

    Sum scores[blocks_n * score_rows];
    [[unroll]] for (uint i = 0; i < blocks_n * score_rows; ++i) scores[i] = Sum(0.0);
    [[unroll]] for (uint d = 0; d < depths; ++d) {
      [[unroll]] for (uint j = 0; j < score_rows; ++j) {
        Left keys;
        coopMatLoad(keys, memory, j * matrix_m * key_pitch + d * (matrix_k / 2), key_pitch,
                    gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint i = 0; i < blocks_n; ++i) {
          scores[i * score_rows + j] = coopMatMulAdd(keys, queries[i * depths + d], scores[i * score_rows + j]);
        }
      }
    }
    // Of what the lane holds, the keys past the end. Their scores are the last one's, which is in the maximum anyway,
    // and their values zero: only in the sum they count too much.
    float past = 0.0;
    [[dont_flatten]] if (last) {
      const int apart = alternate ? int(column_lanes) : 1, first = int(row_of(among * held));
      int count = 0;
      [[unroll]] for (uint j = 0; j < score_rows; ++j) {
        const int left = int(p.keys - first_key) - int(j * matrix_m) - first;
        count += int(held) - clamp((left + apart - 1) / apart, 0, int(held));
      }
      past = float(count);
    }

    float correction[blocks_n];
    bool rescale = false;
    [[unroll]] for (uint i = 0; i < blocks_n; ++i) {
      float highest = minus_infinity;
      [[unroll]] for (uint j = 0; j < score_rows; ++j) {
        [[unroll]] for (uint c = 0; c < held; ++c) highest = max(highest, scores[i * score_rows + j][c]);
      }
      [[unroll]] for (uint mask = matrix_n; mask < subgroup_size; mask *= 2) {
        highest = max(highest, subgroupShuffleXor(highest, mask));
      }
      const float before = maximum[i];
      maximum[i] = max(before, highest * p.scale);
      // While all scores of a row are -inf, any finite number in place of the maximum gives the right weights: zeros.
      const float shift = maximum[i] == minus_infinity ? 0.0 : maximum[i];
      correction[i] = exp2(before - shift);
      rescale = rescale || correction[i] != 1.0;
      float sum = 0.0, distances = 0.0;
      [[unroll]] for (uint j = 0; j < score_rows; ++j) {
        [[unroll]] for (uint c = 0; c < held; ++c) {
          const float distance = fma(scores[i * score_rows + j][c], p.scale, -shift);
          const float weight = exp2(distance);
          distances += distance;
          sum += weight;
          scores[i * score_rows + j][c] = weight;
        }
      }
      sum -= past * scores[(i + 1) * score_rows - 1][held - 1];
      total[i] = nan_or(distances, total[i] * correction[i] + sum);
    }
    if (subgroupAny(rescale)) {
      [[unroll]] for (uint i = 0; i < blocks_n; ++i) {
        [[unroll]] for (uint r = 0; r < value_rows; ++r) {
          [[unroll]] for (uint c = 0; c < held; ++c) mixed[i * value_rows + r][c] *= correction[i];
        }
      }
    }

    [[unroll]] for (uint kk = 0; kk < block_k / matrix_k; ++kk) {
      Right weights[blocks_n];
      [[unroll]] for (uint i = 0; i < blocks_n; ++i) {
        const uint sum = i * score_rows + kk;
        if (transposed) {
          // A lane of an operand holds a row of it.
          [[unroll]] for (uint column = 0; column < matrix_n; ++column) {
            float mine = 0.0;
            [[unroll]] for (uint row = 0; row < matrix_k; ++row) {
              const float other = subgroupShuffle(scores[sum][row], column);
              if (lane == row) mine = other;
            }
            weights[i][column] = float16_t(mine);
          }
        } else if (alternate) {
          // A lane of an operand holds a whole column of it: first what the first of the column's two lanes holds.
          [[unroll]] for (uint c = 0; c < held; c += 2) {
            const uint own = packFloat2x16(f16vec2(scores[sum][c], scores[sum][c + 1]));
            const uint other = subgroupShuffleXor(own, matrix_n);
            const f16vec2 front = unpackFloat2x16(among == 0 ? own : other);
            const f16vec2 back = unpackFloat2x16(among == 0 ? other : own);
            weights[i][c] = front.x;
            weights[i][c + 1] = front.y;
            weights[i][held + c] = back.x;
            weights[i][held + c + 1] = back.y;
          }
        } else {
          [[unroll]] for (uint c = 0; c < held; ++c) weights[i][c] = float16_t(scores[sum][c]);
        }
      }
      [[unroll]] for (uint r = 0; r < value_rows; ++r) {
        Left values;
        coopMatLoad(values, memory, values_at + r * value_matrix + kk * (matrix_k / 2), value_pitch,
                    gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint i = 0; i < blocks_n; ++i) {
          mixed[i * value_rows + r] = coopMatMulAdd(values, weights[i], mixed[i * value_rows + r]);
        }
      }
    }
    barrier();
  }

  [[unroll]] for (uint i = 0; i < blocks_n; ++i) {
    [[unroll]] for (uint mask = matrix_n; mask < subgroup_size; mask *= 2) total[i] += subgroupShuffleXor(total[i], mask);
    const uint query = first_query + gl_SubgroupID * queries_each + i * matrix_n + lane % matrix_n;
    const bool exists = query < p.queries;
    if (store_lse && exists && among == 0) {
      lse[(batch * p.heads + head) * p.queries + query] = nan_or(total[i], maximum[i] * ln_2 + log(total[i]));
    }
    const float factor = 1.0 / total[i];
    const uint start = ((batch * p.queries + query) * p.heads + head) * value_width;
    [[unroll]] for (uint r = 0; r < value_rows; ++r) {
      [[unroll]] for (uint c = 0; c < held; c += 4) {
        const uint column = r * matrix_m + among * held + c;
        f16vec4 mean;
        [[unroll]] for (uint s = 0; s < 4; ++s) mean[s] = float16_t(mixed[i * value_rows + r][c + s] * factor);
        if (!exists || column >= value_width) continue;
        if (value_width % 4 == 0) {
          result[(start + column) >> 2] = mean;
        } else {
          for (uint s = 0; s < 4 && column + s < value_width; ++s) {
            result[(start + column + s) >> 2][(start + column + s) & 3] = mean[s];
          }
        }
      }
    }
  }
}
