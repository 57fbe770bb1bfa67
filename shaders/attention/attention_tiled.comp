//! variant f32 T=float T4=vec4
//! variant f16 T=float16_t T4=f16vec4 needs=storage16
// softmax(scale * Q K^T) V with an online softmax: the scores never leave the workgroup. For GPUs.
//
//   grid        blocks of block_q queries of one head of one batch
//   workgroup   walks the keys, block_k at a time. In shared memory, all f32: a chunk of the queries' and the keys'
//               columns, or a slice of the values; and the weights of that slice. Rows of vec4 have an odd length:
//               neighbouring rows start in different banks
//   invocation  the same rows in both products, row r + i * rows, and in its registers: score_i x score_j scores,
//               column c + j * columns; and score_i x value_j vec4 of sums of values, columns likewise
//   scores      a product of blocks like matmul_tiled's, chunk4 vec4 of the width at a time
//   statistics  `columns` neighbouring invocations share a row; each keeps the running sum of its own scores, so
//               that only the maximum is exchanged at every step; the sums are added at the end
//   values      the columns j of a slice belong to `slice` keys in a row: their weights are written to shared
//               memory, where all that share the row read them
//
// So shared memory depends on the tile and hardly on the width of a head (6.5 KiB for 32 x 32, 13 KiB for 64 x 64,
// which lets four waves onto each SIMD of AMD's GCN), and a vec4 that is read serves as many products as in
// matmul_tiled.
//
// Statistics are f32. A score of -inf has weight 0; a row of nothing but -inf is NaN, as is one with a NaN
// or +inf score: the maximum may or may not notice a NaN, but the score's distance from it is NaN, and with that
// the sum which everything is divided by.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require  // to index f16vec4; no arithmetic
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "lib/tile.glsl"
#include "lib/philox.glsl"
#include "attention.h"

layout(push_constant) uniform Push { AttentionParams p; };
layout(set = 0, binding = 0) readonly buffer Q { T4 q[]; };
layout(set = 0, binding = 1) readonly buffer K { T4 k[]; };
layout(set = 0, binding = 2) readonly buffer V { T4 v[]; };
layout(set = 0, binding = 3) writeonly buffer Out { T result[]; };
layout(set = 0, binding = 4) writeonly buffer Lse { float lse[]; };
layout(set = 0, binding = 5) readonly buffer Step { uint words[]; };
layout(set = 0, binding = 6) readonly buffer Bias { float bias[]; };

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint threads = 256;  // the same number
layout(constant_id = 2) const uint block_q = 64;
layout(constant_id = 3) const uint block_k = 64;
layout(constant_id = 4) const uint key_width = 64;
layout(constant_id = 5) const uint value_width = 64;
layout(constant_id = 6) const uint columns = 16;  // invocations along the keys and along the values' columns
layout(constant_id = 7) const uint chunk4 = 4;    // vec4 of a query's or key's columns at a time
layout(constant_id = 8) const uint slice = 16;    // keys whose values are mixed at a time: a multiple of columns and 4
layout(constant_id = 9) const bool aligned = false;  // every row of every head starts at a multiple of 4
layout(constant_id = 10) const bool store_lse = false;
layout(constant_id = 11) const bool drop = false;
layout(constant_id = 12) const bool causal = false;  // a query sees keys up to its own number
layout(constant_id = 13) const bool bias_table = false;  // of scores: see lib/relative_bias.glsl
layout(constant_id = 14) const uint bias_height = 1;
layout(constant_id = 15) const uint bias_width = 1;
layout(constant_id = 16) const uint bias_first = 0;
layout(constant_id = 17) const bool bias_rows = false;
#include "lib/relative_bias.glsl"

const uint key_width4 = (key_width + 3) / 4;
const uint value_width4 = (value_width + 3) / 4;
const uint chunk_stride = chunk4 | 1;
const uint value_stride = value_width4 | 1;
const uint weight_stride = slice + 4;

const uint rows = threads / columns;
const uint score_i = block_q / rows;
const uint score_j = block_k / columns;
const uint slice_j = slice / columns;
const uint value_j = (value_width4 + columns - 1) / columns;

const uint chunk_size = (block_q + block_k) * chunk_stride;
const uint slice_size = slice * value_stride;
shared vec4 block[chunk_size > slice_size ? chunk_size : slice_size];
shared float weights[block_q * weight_stride];

#define minus_infinity uintBitsToFloat(0xff800000u)

// Four values from column on, of a row that starts at `start`; zeros from the width on.
#define FETCH(NAME, BUFFER, WIDTH)                                                          \
  vec4 NAME(uint start, uint column) {                                                      \
    const uint at = start + column;                                                         \
    if (aligned) return column < WIDTH ? vec4(BUFFER[at >> 2]) : vec4(0.0);                 \
    return vec4(column < WIDTH ? element_of(BUFFER, at) : 0.0,                              \
                column + 1 < WIDTH ? element_of(BUFFER, at + 1) : 0.0,                      \
                column + 2 < WIDTH ? element_of(BUFFER, at + 2) : 0.0,                      \
                column + 3 < WIDTH ? element_of(BUFFER, at + 3) : 0.0);                     \
  }
FETCH(fetch_q, q, key_width)
FETCH(fetch_k, k, key_width)
FETCH(fetch_v, v, value_width)

void main() {
  const uint work = linear_group();
  if (work >= p.blocks) return;
  const uint query_blocks = (p.queries + block_q - 1) / block_q;
  const uint head = work / query_blocks % p.heads;
  const uint batch = work / query_blocks / p.heads;
  const uint first_query = work % query_blocks * block_q;
  const uint thread = gl_LocalInvocationIndex;
  const uint row = thread / columns;
  const uint column = thread % columns;

  const uint q_start = batch * p.queries * p.q_stride + p.q_offset + head * key_width;
  const uint k_start = batch * p.keys * p.k_stride + p.k_offset + head * key_width;
  const uint v_start = batch * p.keys * p.v_stride + p.v_offset + head * value_width;

  float maximum[score_i];
  float sum[score_i];  // of this invocation's columns
  vec4 mixed[score_i * value_j];
  [[unroll]] for (uint i = 0; i < score_i; ++i) {
    maximum[i] = minus_infinity;
    sum[i] = 0.0;
  }
  [[unroll]] for (uint i = 0; i < score_i * value_j; ++i) mixed[i] = vec4(0.0);

  // Keys behind the last query of the block aren't looked at.
  const uint seen = causal ? min(p.keys, first_query + block_q) : p.keys;
  [[dont_unroll]] for (uint first_key = 0; first_key < seen; first_key += block_k) {
    float dots[score_i * score_j];
    [[unroll]] for (uint i = 0; i < score_i * score_j; ++i) dots[i] = 0.0;
    [[dont_unroll]] for (uint first = 0; first < key_width4; first += chunk4) {
      // Past the end, queries and keys are the last one again: computed, but the queries aren't stored, and
      // the keys' scores are replaced below.
      for (uint e = thread; e < block_q * chunk4; e += threads) {
        const uint at = min(first_query + e / chunk4, p.queries - 1) * p.q_stride;
        block[e / chunk4 * chunk_stride + e % chunk4] = fetch_q(q_start + at, (first + e % chunk4) * 4);
      }
      for (uint e = thread; e < block_k * chunk4; e += threads) {
        const uint at = min(first_key + e / chunk4, p.keys - 1) * p.k_stride;
        block[(block_q + e / chunk4) * chunk_stride + e % chunk4] = fetch_k(k_start + at, (first + e % chunk4) * 4);
      }
      barrier();
      [[unroll]] for (uint d = 0; d < chunk4; ++d) {
        vec4 a[score_i];
        [[unroll]] for (uint i = 0; i < score_i; ++i) a[i] = block[(row + i * rows) * chunk_stride + d];
        [[unroll]] for (uint j = 0; j < score_j; ++j) {
          const vec4 b = block[(block_q + column + j * columns) * chunk_stride + d];
          [[unroll]] for (uint i = 0; i < score_i; ++i) {
            dots[i * score_j + j] = multiply_add(a[i], b, dots[i * score_j + j]);
          }
        }
      }
      barrier();
    }

    [[unroll]] for (uint i = 0; i < score_i; ++i) {
      float highest = minus_infinity;
      [[unroll]] for (uint j = 0; j < score_j; ++j) {
        const uint key = first_key + column + j * columns;
        const bool is_key = key < p.keys && (!causal || key <= first_query + row + i * rows);
        float score = dots[i * score_j + j] * p.scale;
        if (bias_table) score += bias[bias_row(first_query + row + i * rows, key) * p.heads + head];
        if (bias_rows) {
          const uint line = (batch * p.heads + head) * p.queries + min(first_query + row + i * rows, p.queries - 1);
          score += bias_of_key(bias, line, min(key, p.keys - 1));
        }
        dots[i * score_j + j] = is_key ? score : minus_infinity;
        highest = max(highest, dots[i * score_j + j]);
      }
      weights[(row + i * rows) * weight_stride + column] = highest;
    }
    barrier();
    [[unroll]] for (uint i = 0; i < score_i; ++i) {
      const float before = maximum[i];
      for (uint c = 0; c < columns; ++c) {
        maximum[i] = max(maximum[i], weights[(row + i * rows) * weight_stride + c]);
      }
      // While all scores are -inf, any finite number in place of the maximum gives the right weights: zeros.
      const float shift = maximum[i] == minus_infinity ? 0.0 : maximum[i];
      const float correction = exp(before - shift);
      sum[i] *= correction;
      [[unroll]] for (uint j = 0; j < value_j; ++j) mixed[i * value_j + j] *= correction;
      float distances = 0.0;
      [[unroll]] for (uint j = 0; j < score_j; ++j) {
        const float distance = dots[i * score_j + j] - shift;
        distances += distance;
        dots[i * score_j + j] = exp(distance);
        sum[i] += dots[i * score_j + j];
        if (drop) {
          const uint key = first_key + column + j * columns;
          const uint draw_row = (batch * p.heads + head) * p.queries + first_query + row + i * rows;
          const bool kept = kept_four(mask_source(words, p.drop_stream, p.drop_threshold), key / 4, draw_row)[key % 4];
          dots[i * score_j + j] = kept ? dots[i * score_j + j] * p.drop_factor : 0.0;
        }
      }
      sum[i] = nan_or(distances, sum[i]);
    }
    barrier();  // before the weights overwrite the maxima

    const uint end = min(first_key + block_k, seen);
    [[dont_unroll]] for (uint slice_key = first_key; slice_key < end; slice_key += slice) {
      [[unroll]] for (uint i = 0; i < score_i; ++i) {
        [[unroll]] for (uint j = 0; j < slice_j; ++j) {
          weights[(row + i * rows) * weight_stride + column + j * columns] = dots[i * score_j + j];
        }
        // The next slice's weights move up, so that the array is only ever indexed by constants.
        [[unroll]] for (uint j = slice_j; j < score_j; ++j) dots[i * score_j + j - slice_j] = dots[i * score_j + j];
      }
      // Values past the end are zero: 0 * NaN would not vanish.
      for (uint e = thread; e < slice * value_width4; e += threads) {
        const uint key = slice_key + e / value_width4;
        vec4 value = vec4(0.0);
        if (key < p.keys) value = fetch_v(v_start + key * p.v_stride, e % value_width4 * 4);
        block[e / value_width4 * value_stride + e % value_width4] = value;
      }
      barrier();
      [[dont_unroll]] for (uint key = 0; key < slice; key += 4) {  // Apple's compiler would hoist all loads
        vec4 four[score_i];
        [[unroll]] for (uint i = 0; i < score_i; ++i) {
          const uint at = (row + i * rows) * weight_stride + key;
          four[i] = vec4(weights[at], weights[at + 1], weights[at + 2], weights[at + 3]);
        }
        [[unroll]] for (uint j = 0; j < value_j; ++j) {
          // Columns past the width repeat the last: computed, not stored.
          const uint at = key * value_stride + min(column + j * columns, value_width4 - 1);
          [[unroll]] for (uint n = 0; n < 4; ++n) {
            const vec4 value = block[at + n * value_stride];
            [[unroll]] for (uint i = 0; i < score_i; ++i) mixed[i * value_j + j] += four[i][n] * value;
          }
        }
      }
      barrier();  // before the next slice, keys or maxima
    }
  }

  [[unroll]] for (uint i = 0; i < score_i; ++i) weights[(row + i * rows) * weight_stride + column] = sum[i];
  barrier();
  [[unroll]] for (uint i = 0; i < score_i; ++i) {
    const uint r = row + i * rows;
    float total = 0.0;
    for (uint c = 0; c < columns; ++c) total += weights[r * weight_stride + c];
    if (first_query + r < p.queries) {
      const uint at = (batch * p.heads + head) * p.queries + first_query + r;
      if (store_lse && column == 0) lse[at] = nan_or(total, maximum[i] + log(total));
      const uint out_row = ((batch * p.queries + first_query + r) * p.heads + head) * value_width;
      [[unroll]] for (uint j = 0; j < value_j; ++j) {
        const vec4 mean = mixed[i * value_j + j] / total;
        const uint first = (column + j * columns) * 4;
        [[unroll]] for (uint n = 0; n < 4; ++n) {
          if (first + n < value_width) result[out_row + first + n] = store_as(T, mean[n]);
        }
      }
    }
  }
}
