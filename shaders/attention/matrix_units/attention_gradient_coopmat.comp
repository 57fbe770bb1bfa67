//! variant rounded needs=coopmat,fp16,subgroup_control
// Attention's gradients with all five products on the matrix units (VK_KHR_cooperative_matrix): of f32 that is rounded to
// f16 on its way, summed in f32. Runs twice, as attention_gradient_tiled.comp does: with own_keys off its own rows are
// queries, whose gradients it computes from all keys; with own_keys on they are keys, whose gradients and whose values' it
// computes from all queries. So no product needs a transposed operand that another one wrote.
//
//   grid        blocks of block_own rows of one head of one batch
//   workgroup   subgroups_m x subgroups_n subgroups; walks the others, block_other at a time. Its own rows lie in shared
//               memory as f16 for good, a step of the others' beside them; the next step is on its way to registers while
//               the sums are made
//   subgroup    has blocks_m * matrix_m of the own rows; of the products' columns, which are others, and of the sums' its
//               part of subgroups_n. Wide heads need many registers for their sums, which are shared out so
//   products    q . k gives the weights, dout . v their gradients. Accumulators begin with what is subtracted from each,
//               the log-sum-exp and delta, so that nobody needs to know which lane holds what: what is left is done
//               element by element
//   sums        weights and their gradients go to shared memory as f16, where all subgroups of a row read them as the
//               left operand
//
// f16's range. Every factor is a power of two, and so exact.
//   dout        is multiplied by g, which brings its largest value to less than 2^15 (lib/half_range.glsl); delta, which is
//               linear in it, too.
//   weights     are at most 1, but for what rounding takes from the scores that the log-sum-exp is of. Times 2^8 they keep
//               eleven bits down to 2^-22, and there is room for 255.
//   gradients   are weight * (dout . v - delta). With |v| < 2^(e + 1) and values W <= 2^w wide, both terms are at most
//               2^w * 2^15 * 2^(e + 1), delta being a mean of the others: their difference is at most 2^(w + e + 17). Times
//               2^-(w + e + 3) it is at most 2^14 times the weight, and f16 ends at 2^16. It keeps eleven bits down to
//               2^-28 of that bound.
// Rows past an edge are zero on the others' side, and their weights are, too.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "lib/tile.glsl"
#include "lib/half_range.glsl"
#include "lib/eight.glsl"
#include "attention/attention_gradient.h"

layout(push_constant) uniform Push { AttentionGradientParams p; };
layout(set = 0, binding = 0) readonly buffer OwnKey { vec4 own_key[]; };        // q, or k where own_keys
layout(set = 0, binding = 1) readonly buffer OwnValue { vec4 own_value[]; };    // the result's gradient, or v
layout(set = 0, binding = 2) readonly buffer OtherKey { vec4 other_key[]; };
layout(set = 0, binding = 3) readonly buffer OtherValue { vec4 other_value[]; };
layout(set = 0, binding = 4) readonly buffer Statistics { vec2 statistics[]; };        // of a query: lse, delta
layout(set = 0, binding = 5) readonly buffer GivenMagnitude { float largest_given; };  // of the result's gradient
layout(set = 0, binding = 6) readonly buffer ValueMagnitude { float largest_value; };
layout(set = 0, binding = 7) writeonly buffer KeyGradient { vec4 key_gradient[]; };      // laid out as own_key
layout(set = 0, binding = 8) writeonly buffer ValueGradient { vec4 value_gradient[]; };  // where own_keys

layout(local_size_x_id = 0) in;  // subgroups_m * subgroups_n * subgroup_size
layout(constant_id = 1) const uint subgroup_size = 32;  // the pipeline requires this size and full subgroups
layout(constant_id = 2) const uint matrix_m = 16;       // a multiple of 4
layout(constant_id = 3) const uint matrix_n = 16;       // a multiple of 8, as is matrix_k
layout(constant_id = 4) const uint matrix_k = 16;
layout(constant_id = 5) const uint subgroups_m = 2;
layout(constant_id = 6) const uint subgroups_n = 2;
layout(constant_id = 7) const uint blocks_m = 1;
layout(constant_id = 8) const uint block_other = 32;
layout(constant_id = 9) const uint key_width = 64;
layout(constant_id = 10) const uint value_width = 64;
layout(constant_id = 11) const bool by_four = false;  // every row of every head starts at a multiple of 4 and ends at one
layout(constant_id = 12) const bool own_keys = false;

const uint threads = subgroups_m * subgroups_n * subgroup_size;
const uint rows = blocks_m * matrix_m;  // of a subgroup
const uint block_own = subgroups_m * rows;
const uint score_columns = block_other / matrix_n / subgroups_n;
const uint key_depths = (key_width + matrix_k - 1) / matrix_k;
const uint value_depths = (value_width + matrix_k - 1) / matrix_k;
const uint key_columns = (key_width + matrix_n - 1) / matrix_n;
const uint value_columns = (value_width + matrix_n - 1) / matrix_n;
const uint key_each = (key_columns + subgroups_n - 1) / subgroups_n;
const uint value_each = (value_columns + subgroups_n - 1) / subgroups_n;

// Shared memory, counted in 16 bytes. Rows are whole matrices, as left and as right operands, and padded by 16 bytes, so
// that eight of them begin in eight groups of banks.
const uint grain = matrix_k > matrix_n ? matrix_k : matrix_n;
const uint key_width8 = (key_width + grain - 1) / grain * (grain / 8);
const uint value_width8 = (value_width + grain - 1) / grain * (grain / 8);
const uint key_pitch = key_width8 + 1;
const uint value_pitch = value_width8 + 1;
const uint weight_pitch = block_other / 8 + 1;
const uint own_values_at = block_own * key_pitch;
const uint other_keys_at = own_values_at + block_own * value_pitch;
const uint other_values_at = other_keys_at + block_other * key_pitch;
const uint gradients_at = other_values_at + block_other * value_pitch;
const uint weights_at = gradients_at + block_own * weight_pitch;  // of own keys alone
// What accumulators begin with: of own queries for each row, as often as a matrix has columns; of others for each
// column, as often as it has rows.
const uint starts_at = weights_at + (own_keys ? block_own * weight_pitch : 0);
const uint row_start = matrix_n / 4, column_start = matrix_m / 4;
const uint deltas_at = starts_at + (own_keys ? block_other * column_start : block_own * row_start);
const uint edge_at = deltas_at + block_own * row_start;  // of own queries alone
const uint loop_end = own_keys ? deltas_at + block_other * column_start : edge_at + block_other * column_start;
const uint sums_size = subgroups_m * subgroups_n * rows * (matrix_n / 4);  // after the loop, over everything
shared uvec4 memory[loop_end > sums_size ? loop_end : sums_size];

const uint items_k = block_other * key_width8;
const uint items_v = block_other * value_width8;
const uint items_s = block_other * column_start;
const uint loads_k = (items_k + threads - 1) / threads;
const uint loads_v = (items_v + threads - 1) / threads;
const uint loads_s = (items_s + threads - 1) / threads;

#define log2_e 1.4426950408889634
#define weight_exponent 8.0
#define far_below -3e38  // as a score: of no weight

// Eight values from column on, of a row that starts at `start`; zeros from the width on.
#define FETCH(NAME, BUFFER, WIDTH)                                                                    \
  Eight NAME(uint start, uint column) {                                                               \
    const uint at = start + column;                                                                   \
    if (by_four) {                                                                                    \
      return Eight(column < WIDTH ? BUFFER[at >> 2] : vec4(0.0),                                      \
                   column + 4 < WIDTH ? BUFFER[(at >> 2) + 1] : vec4(0.0));                           \
    }                                                                                                 \
    Eight eight;                                                                                      \
    [[unroll]] for (uint i = 0; i < 4; ++i) {                                                         \
      eight.low[i] = column + i < WIDTH ? element_of(BUFFER, at + i) : 0.0;                           \
      eight.high[i] = column + 4 + i < WIDTH ? element_of(BUFFER, at + 4 + i) : 0.0;                  \
    }                                                                                                 \
    return eight;                                                                                     \
  }
FETCH(fetch_own_key, own_key, key_width)
FETCH(fetch_own_value, own_value, value_width)
FETCH(fetch_other_key, other_key, key_width)
FETCH(fetch_other_value, other_value, value_width)
const Eight no_eight = Eight(vec4(0.0), vec4(0.0));

#define Left coopmat<float16_t, gl_ScopeSubgroup, matrix_m, matrix_k, gl_MatrixUseA>
#define Right coopmat<float16_t, gl_ScopeSubgroup, matrix_k, matrix_n, gl_MatrixUseB>
#define Sum coopmat<float, gl_ScopeSubgroup, matrix_m, matrix_n, gl_MatrixUseAccumulator>
#define Rounded coopmat<float16_t, gl_ScopeSubgroup, matrix_m, matrix_n, gl_MatrixUseAccumulator>

// The exponent of the power of two that the weights' gradients are multiplied by, dout's own factor aside.
int gradient_exponent() {
  const int stored = int(floatBitsToUint(largest_value) >> 23 & 255u);
  const int e = stored == 0 || stored == 255 ? 0 : clamp(stored - 127, -64, 16);
  return -(3 + e + findMSB(value_width - 1) + 1);  // the highest bit of 0 is -1
}
float power_of_two(int exponent) { return uintBitsToFloat(uint(127 + exponent) << 23); }

void main() {
  const uint work = linear_group();
  if (work >= p.blocks) return;
  const uint own_blocks = (p.own + block_own - 1) / block_own;
  const uint head = work / own_blocks % p.heads;
  const uint batch = work / own_blocks / p.heads;
  const uint first_own = work % own_blocks * block_own;
  const uint thread = gl_LocalInvocationIndex;
  const uint lane = gl_SubgroupInvocationID;
  const uint first_row = gl_SubgroupID / subgroups_n * rows;  // of the own rows, this subgroup's
  const uint part = gl_SubgroupID % subgroups_n;
  const uint first_score = part * score_columns * matrix_n;

  const uint own_key_start = batch * p.own * p.own_key_stride + p.own_key_offset + head * key_width;
  const uint own_value_start = batch * p.own * p.own_value_stride + p.own_value_offset + head * value_width;
  const uint other_key_start = batch * p.others * p.other_key_stride + p.other_key_offset + head * key_width;
  const uint other_value_start = batch * p.others * p.other_value_stride + p.other_value_offset + head * value_width;
  const uint first_statistic = (batch * p.heads + head) * (own_keys ? p.others : p.own);

  const float given_factor = half_range_factor(largest_given);
  const int exponent = gradient_exponent();
  const float gradient_factor = power_of_two(exponent - int(weight_exponent));
  const float start_factor = -1.0 / p.scale;

  Eight next_k[loads_k], next_v[loads_v];
  float next_start[loads_s], next_delta[loads_s];
#define FETCH_STEP(FIRST)                                                                                          \
  {                                                                                                                \
    [[unroll]] for (uint i = 0; i < loads_k; ++i) {                                                                \
      const uint e = thread + i * threads;                                                                         \
      const uint row = (FIRST) + e / key_width8;                                                                   \
      next_k[i] = no_eight;                                                                                        \
      if (row < p.others) next_k[i] = fetch_other_key(other_key_start + row * p.other_key_stride, e % key_width8 * 8); \
    }                                                                                                              \
    [[unroll]] for (uint i = 0; i < loads_v; ++i) {                                                                \
      const uint e = thread + i * threads;                                                                         \
      const uint row = (FIRST) + e / value_width8;                                                                 \
      next_v[i] = no_eight;                                                                                        \
      if (row < p.others) {                                                                                        \
        next_v[i] = fetch_other_value(other_value_start + row * p.other_value_stride, e % value_width8 * 8);       \
      }                                                                                                            \
    }                                                                                                              \
    if (own_keys) {                                                                                                \
      [[unroll]] for (uint i = 0; i < loads_s; ++i) {                                                              \
        const uint row = (FIRST) + (thread + i * threads) / column_start;                                          \
        next_start[i] = far_below;                                                                                 \
        next_delta[i] = 0.0;                                                                                       \
        if (row < p.others) {                                                                                      \
          const vec2 lse_and_delta = statistics[first_statistic + row];                                            \
          next_start[i] = lse_and_delta.x * start_factor;                                                          \
          next_delta[i] = -(lse_and_delta.y * given_factor);                                                       \
        }                                                                                                          \
      }                                                                                                            \
    }                                                                                                              \
  }
  FETCH_STEP(0)

  // Own rows past the end are the last one again: computed, not stored.
  for (uint e = thread; e < block_own * key_width8; e += threads) {
    const uint row = min(first_own + e / key_width8, p.own - 1);
    memory[e / key_width8 * key_pitch + e % key_width8] =
        packed(fetch_own_key(own_key_start + row * p.own_key_stride, e % key_width8 * 8));
  }
  for (uint e = thread; e < block_own * value_width8; e += threads) {
    const uint row = min(first_own + e / value_width8, p.own - 1);
    memory[own_values_at + e / value_width8 * value_pitch + e % value_width8] =
        packed(fetch_own_value(own_value_start + row * p.own_value_stride, e % value_width8 * 8),
               own_keys ? 1.0 : given_factor);
  }
  if (!own_keys) {
    for (uint e = thread; e < block_own * row_start; e += threads) {
      const vec2 lse_and_delta = statistics[first_statistic + min(first_own + e / row_start, p.own - 1)];
      memory[starts_at + e] = floatBitsToUint(vec4(lse_and_delta.x * start_factor));
      memory[deltas_at + e] = floatBitsToUint(vec4(-(lse_and_delta.y * given_factor)));
    }
    // What is added to the last step's scores.
    const uint last = (p.others - 1) / block_other * block_other;
    for (uint e = thread; e < block_other * column_start; e += threads) {
      memory[edge_at + e] = floatBitsToUint(vec4(last + e / column_start < p.others ? 0.0 : far_below));
    }
  }

  Sum key_sums[blocks_m * key_each], value_sums[blocks_m * value_each];
  [[unroll]] for (uint i = 0; i < blocks_m * key_each; ++i) key_sums[i] = Sum(0.0);
  if (own_keys) {
    [[unroll]] for (uint i = 0; i < blocks_m * value_each; ++i) value_sums[i] = Sum(0.0);
  }

  [[dont_unroll]] for (uint first_other = 0; first_other < p.others; first_other += block_other) {
    [[unroll]] for (uint i = 0; i < loads_k; ++i) {
      const uint e = thread + i * threads;
      if (items_k % threads == 0 || e < items_k) {
        memory[other_keys_at + e / key_width8 * key_pitch + e % key_width8] = packed(next_k[i]);
      }
    }
    [[unroll]] for (uint i = 0; i < loads_v; ++i) {
      const uint e = thread + i * threads;
      if (items_v % threads == 0 || e < items_v) {
        memory[other_values_at + e / value_width8 * value_pitch + e % value_width8] =
            packed(next_v[i], own_keys ? given_factor : 1.0);
      }
    }
    if (own_keys) {
      [[unroll]] for (uint i = 0; i < loads_s; ++i) {
        const uint e = thread + i * threads;
        if (items_s % threads == 0 || e < items_s) {
          memory[starts_at + e] = floatBitsToUint(vec4(next_start[i]));
          memory[deltas_at + e] = floatBitsToUint(vec4(next_delta[i]));
        }
      }
    }
    barrier();

    Sum weights[blocks_m * score_columns], gradients[blocks_m * score_columns];
    if (own_keys) {
      [[unroll]] for (uint j = 0; j < score_columns; ++j) {
        const uint at = (first_score + j * matrix_n) * column_start;
        Sum start, delta;
        coopMatLoad(start, memory, starts_at + at, column_start, gl_CooperativeMatrixLayoutColumnMajor);
        coopMatLoad(delta, memory, deltas_at + at, column_start, gl_CooperativeMatrixLayoutColumnMajor);
        [[unroll]] for (uint i = 0; i < blocks_m; ++i) {
          weights[i * score_columns + j] = start;
          gradients[i * score_columns + j] = delta;
        }
      }
    } else {
      [[unroll]] for (uint i = 0; i < blocks_m; ++i) {
        const uint at = (first_row + i * matrix_m) * row_start;
        Sum start, delta;
        coopMatLoad(start, memory, starts_at + at, row_start, gl_CooperativeMatrixLayoutRowMajor);
        coopMatLoad(delta, memory, deltas_at + at, row_start, gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint j = 0; j < score_columns; ++j) {
          weights[i * score_columns + j] = start;
          gradients[i * score_columns + j] = delta;
        }
      }
    }

#define MULTIPLY(PRODUCTS, DEPTHS, OWN_AT, OTHER_AT, PITCH)                                                         \
  [[dont_unroll]] for (uint d = 0; d < DEPTHS; ++d) {                                                               \
    Left own[blocks_m];                                                                                             \
    [[unroll]] for (uint i = 0; i < blocks_m; ++i) {                                                                \
      coopMatLoad(own[i], memory, (OWN_AT) + (first_row + i * matrix_m) * PITCH + d * (matrix_k / 8), PITCH,        \
                  gl_CooperativeMatrixLayoutRowMajor);                                                              \
    }                                                                                                               \
    [[unroll]] for (uint j = 0; j < score_columns; ++j) {                                                           \
      Right other;                                                                                                  \
      coopMatLoad(other, memory, (OTHER_AT) + (first_score + j * matrix_n) * PITCH + d * (matrix_k / 8), PITCH,     \
                  gl_CooperativeMatrixLayoutColumnMajor);                                                           \
      [[unroll]] for (uint i = 0; i < blocks_m; ++i) {                                                              \
        PRODUCTS[i * score_columns + j] = coopMatMulAdd(own[i], other, PRODUCTS[i * score_columns + j]);            \
      }                                                                                                             \
    }                                                                                                               \
  }
    MULTIPLY(weights, key_depths, 0, other_keys_at, key_pitch)
    MULTIPLY(gradients, value_depths, own_values_at, other_values_at, value_pitch)

    if (!own_keys && first_other + block_other > p.others) {
      [[unroll]] for (uint j = 0; j < score_columns; ++j) {
        Sum edge;
        coopMatLoad(edge, memory, edge_at + (first_score + j * matrix_n) * column_start, column_start,
                    gl_CooperativeMatrixLayoutColumnMajor);
        [[unroll]] for (uint i = 0; i < blocks_m; ++i) {
          weights[i * score_columns + j] = weights[i * score_columns + j] + edge;
        }
      }
    }
    [[unroll]] for (uint s = 0; s < blocks_m * score_columns; ++s) {
      [[unroll]] for (uint e = 0; e < weights[s].length(); ++e) {
        const float distance = fma(weights[s][e], p.scale * log2_e, weight_exponent);
        const float weight = nan_or(distance, exp2(distance));
        weights[s][e] = weight;
        gradients[s][e] = weight * gradient_factor * gradients[s][e];
      }
    }

    // To shared memory as f16: this subgroup's columns of its rows.
#define STORE(WEIGHTS, AT)                                                                                     \
  [[unroll]] for (uint i = 0; i < blocks_m; ++i) {                                                             \
    [[unroll]] for (uint j = 0; j < score_columns; ++j) {                                                      \
      coopMatStore(Rounded(WEIGHTS[i * score_columns + j]), memory,                                            \
                   (AT) + (first_row + i * matrix_m) * weight_pitch + (first_score + j * matrix_n) / 8, weight_pitch, \
                   gl_CooperativeMatrixLayoutRowMajor);                                                        \
    }                                                                                                          \
  }
    STORE(gradients, gradients_at)
    if (own_keys) STORE(weights, weights_at)

    if (first_other + block_other < p.others) FETCH_STEP(first_other + block_other)
    if (subgroups_n == 1) {
      subgroupBarrier();
    } else {
      barrier();
    }

    // Past the last column it is the last one again: computed, not stored.
#define ADD(SUMS, EACH, COLUMNS, AT, OTHER_AT, PITCH)                                                            \
  {                                                                                                              \
    Left left[blocks_m];                                                                                         \
    [[unroll]] for (uint i = 0; i < blocks_m; ++i) {                                                             \
      coopMatLoad(left[i], memory, (AT) + (first_row + i * matrix_m) * weight_pitch + kk * (matrix_k / 8), weight_pitch, \
                  gl_CooperativeMatrixLayoutRowMajor);                                                           \
    }                                                                                                            \
    [[unroll]] for (uint j = 0; j < EACH; ++j) {                                                                 \
      Right right;                                                                                               \
      coopMatLoad(right, memory,                                                                                 \
                  (OTHER_AT) + kk * matrix_k * PITCH + min(part * EACH + j, COLUMNS - 1) * (matrix_n / 8), PITCH, \
                  gl_CooperativeMatrixLayoutRowMajor);                                                           \
      [[unroll]] for (uint i = 0; i < blocks_m; ++i) SUMS[i * EACH + j] = coopMatMulAdd(left[i], right, SUMS[i * EACH + j]); \
    }                                                                                                            \
  }
    [[dont_unroll]] for (uint kk = 0; kk < block_other / matrix_k; ++kk) {
      ADD(key_sums, key_each, key_columns, gradients_at, other_keys_at, key_pitch)
      if (own_keys) ADD(value_sums, value_each, value_columns, weights_at, other_values_at, value_pitch)
    }
    barrier();
  }

  const uint own_patch = gl_SubgroupID * rows * row_start;
#define WRITE(SUMS, EACH, WIDTH, BUFFER, START, STRIDE, FACTOR)                                                   \
  [[unroll]] for (uint j = 0; j < EACH; ++j) {                                                                    \
    subgroupBarrier();                                                                                            \
    [[unroll]] for (uint i = 0; i < blocks_m; ++i) {                                                              \
      coopMatStore(SUMS[i * EACH + j], memory, own_patch + i * matrix_m * row_start, row_start,                       \
                   gl_CooperativeMatrixLayoutRowMajor);                                                           \
    }                                                                                                             \
    subgroupBarrier();                                                                                            \
    for (uint e = lane; e < rows * row_start; e += subgroup_size) {                                               \
      const uint row = first_own + first_row + e / row_start;                                                     \
      const uint column = (part * EACH + j) * matrix_n + e % row_start * 4;                                       \
      if (row >= p.own || column >= WIDTH) continue;                                                              \
      const vec4 sum = uintBitsToFloat(memory[own_patch + e]) * (FACTOR)*undo;                                        \
      const uint at = START + row * STRIDE + column;                                                              \
      if (by_four) {                                                                                              \
        BUFFER[at >> 2] = sum;                                                                                    \
      } else {                                                                                                    \
        for (uint s = 0; s < 4 && column + s < WIDTH; ++s) BUFFER[(at + s) >> 2][(at + s) & 3] = sum[s];          \
      }                                                                                                           \
    }                                                                                                             \
  }
  const float undo = half_range_undo(largest_given);
  WRITE(key_sums, key_each, key_width, key_gradient, own_key_start, p.own_key_stride, p.scale * power_of_two(-exponent))
  if (own_keys) {
    WRITE(value_sums, value_each, value_width, value_gradient, own_value_start, p.own_value_stride,
          power_of_two(-int(weight_exponent)))
  }
}
