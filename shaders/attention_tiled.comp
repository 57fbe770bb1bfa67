//! variant f32 T=float T4=vec4
//! variant f16 T=float16_t T4=f16vec4 needs=storage16
// softmax(scale * Q K^T) V with an online softmax: the scores never leave the workgroup. For GPUs.
//
//   grid        blocks of block_q queries of one head of one batch
//   workgroup   walks the keys, block_k at a time. In shared memory, all f32: the queries' block (once), one
//               block that holds first the keys and then the values, the block of scores, and a little for
//               the reductions. Rows of vec4 have an odd length: neighbouring rows start in different banks
//   scores      an invocation makes (block_q / score_rows) x (block_k / score_columns) of them, interleaved
//   statistics  threads / block_q neighbouring invocations share a row; each keeps the running sum of its own
//               columns, so that only the maximum is exchanged at every step; the sums are added at the end
//   values      an invocation keeps (block_q / value_rows) rows x values_each vec4 of columns in registers
//
// Statistics are f32. A score of -inf has weight 0; a row of nothing but -inf is NaN, as is one with a NaN
// or +inf score: the maximum may or may not notice a NaN, but exp(NaN - maximum) carries it into the sum and
// into every product.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require  // to index f16vec4; no arithmetic
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/tile.glsl"
#include "attention.h"

layout(push_constant) uniform Push { AttentionParams p; };
layout(set = 0, binding = 0) readonly buffer Q { T4 q[]; };
layout(set = 0, binding = 1) readonly buffer K { T4 k[]; };
layout(set = 0, binding = 2) readonly buffer V { T4 v[]; };
layout(set = 0, binding = 3) writeonly buffer Out { T result[]; };
layout(set = 0, binding = 4) writeonly buffer Lse { float lse[]; };

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint threads = 128;  // the same number
layout(constant_id = 2) const uint block_q = 32;
layout(constant_id = 3) const uint block_k = 32;
layout(constant_id = 4) const uint key_width = 64;
layout(constant_id = 5) const uint value_width = 64;
layout(constant_id = 6) const uint score_columns = 8;  // invocations along the keys, and the rest along queries
layout(constant_id = 7) const uint value_columns = 16;  // invocations along the values' columns, likewise
layout(constant_id = 8) const bool aligned = false;     // every row of every head starts at a multiple of 4
layout(constant_id = 9) const bool store_lse = false;

const uint key_width4 = (key_width + 3) / 4;
const uint value_width4 = (value_width + 3) / 4;
const uint key_stride = key_width4 | 1;
const uint value_stride = value_width4 | 1;
const uint score_stride = block_k + 4;

const uint score_rows = threads / score_columns;
const uint score_i = block_q / score_rows;
const uint score_j = block_k / score_columns;
const uint sharers = threads / block_q;
const uint value_rows = threads / value_columns;
const uint value_i = block_q / value_rows;
const uint value_j = (value_width4 + value_columns - 1) / value_columns;

shared vec4 queries[block_q * key_stride];
shared vec4 block[block_k * (key_stride > value_stride ? key_stride : value_stride)];
shared float scores[block_q * score_stride];
shared float partials[threads];
shared float corrections[block_q];

#define minus_infinity uintBitsToFloat(0xff800000u)

// Four values from column on, of a row that starts at `start`; zeros from the width on.
#define FETCH(NAME, BUFFER, WIDTH)                                                          \
  vec4 NAME(uint start, uint column) {                                                      \
    const uint at = start + column;                                                         \
    if (aligned) return vec4(BUFFER[at >> 2]);                                              \
    return vec4(element_of(BUFFER, at), column + 1 < WIDTH ? element_of(BUFFER, at + 1) : 0.0, \
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

  const uint q_start = batch * p.queries * p.q_stride + p.q_offset + head * key_width;
  const uint k_start = batch * p.keys * p.k_stride + p.k_offset + head * key_width;
  const uint v_start = batch * p.keys * p.v_stride + p.v_offset + head * value_width;

  // Queries past the end are the last one again: computed, not stored.
  for (uint e = thread; e < block_q * key_width4; e += threads) {
    const uint row = min(first_query + e / key_width4, p.queries - 1);
    queries[e / key_width4 * key_stride + e % key_width4] = fetch_q(q_start + row * p.q_stride, e % key_width4 * 4);
  }

  const uint score_row = thread / score_columns;
  const uint score_column = thread % score_columns;
  const uint row = thread / sharers;  // whose statistics this invocation shares
  const uint share = thread % sharers;
  const uint value_row = thread / value_columns;
  const uint value_column = thread % value_columns;

  float maximum = minus_infinity;
  float sum = 0.0;  // of this invocation's columns
  vec4 mixed[value_i * value_j];
  [[unroll]] for (uint i = 0; i < value_i * value_j; ++i) mixed[i] = vec4(0.0);

  [[dont_unroll]] for (uint first_key = 0; first_key < p.keys; first_key += block_k) {
    // Keys. Past the end they are the last one again; their scores are replaced below.
    for (uint e = thread; e < block_k * key_width4; e += threads) {
      const uint key = min(first_key + e / key_width4, p.keys - 1);
      block[e / key_width4 * key_stride + e % key_width4] = fetch_k(k_start + key * p.k_stride, e % key_width4 * 4);
    }
    barrier();

    float dots[score_i * score_j];
    [[unroll]] for (uint i = 0; i < score_i * score_j; ++i) dots[i] = 0.0;
    [[dont_unroll]] for (uint d = 0; d < key_width4; ++d) {
      vec4 a[score_i];
      [[unroll]] for (uint i = 0; i < score_i; ++i) a[i] = queries[(score_row + i * score_rows) * key_stride + d];
      [[unroll]] for (uint j = 0; j < score_j; ++j) {
        const vec4 b = block[(score_column + j * score_columns) * key_stride + d];
        [[unroll]] for (uint i = 0; i < score_i; ++i) dots[i * score_j + j] = multiply_add(a[i], b, dots[i * score_j + j]);
      }
    }
    [[unroll]] for (uint i = 0; i < score_i; ++i) {
      [[unroll]] for (uint j = 0; j < score_j; ++j) {
        const uint column = score_column + j * score_columns;
        scores[(score_row + i * score_rows) * score_stride + column] =
            first_key + column < p.keys ? dots[i * score_j + j] * p.scale : minus_infinity;
      }
    }
    barrier();

    // Values, into the memory of the keys. Past the end they are zero: 0 * NaN would not vanish.
    for (uint e = thread; e < block_k * value_width4; e += threads) {
      const uint key = first_key + e / value_width4;
      vec4 value = vec4(0.0);
      if (key < p.keys) value = fetch_v(v_start + key * p.v_stride, e % value_width4 * 4);
      block[e / value_width4 * value_stride + e % value_width4] = value;
    }

    float highest = minus_infinity;
    for (uint column = share; column < block_k; column += sharers) {
      highest = max(highest, scores[row * score_stride + column]);
    }
    partials[thread] = highest;
    barrier();

    const float before = maximum;
    for (uint i = 0; i < sharers; ++i) maximum = max(maximum, partials[row * sharers + i]);
    // While all scores are -inf, any finite number in place of the maximum gives the right weights: zeros.
    const float shift = maximum == minus_infinity ? 0.0 : maximum;
    const float correction = exp(before - shift);
    sum *= correction;
    for (uint column = share; column < block_k; column += sharers) {
      const float weight = exp(scores[row * score_stride + column] - shift);
      scores[row * score_stride + column] = weight;
      sum += weight;
    }
    if (share == 0) corrections[row] = correction;
    barrier();

    [[unroll]] for (uint i = 0; i < value_i; ++i) {
      const float c = corrections[value_row + i * value_rows];
      [[unroll]] for (uint j = 0; j < value_j; ++j) mixed[i * value_j + j] *= c;
    }
    [[dont_unroll]] for (uint key = 0; key < block_k; key += 4) {
      vec4 weights[value_i];
      [[unroll]] for (uint i = 0; i < value_i; ++i) {
        const uint at = (value_row + i * value_rows) * score_stride + key;
        weights[i] = vec4(scores[at], scores[at + 1], scores[at + 2], scores[at + 3]);
      }
      [[unroll]] for (uint j = 0; j < value_j; ++j) {
        // Columns past the width repeat the last: computed, not stored.
        const uint at = key * value_stride + min(value_column + j * value_columns, value_width4 - 1);
        [[unroll]] for (uint s = 0; s < 4; ++s) {
          const vec4 value = block[at + s * value_stride];
          [[unroll]] for (uint i = 0; i < value_i; ++i) mixed[i * value_j + j] += weights[i][s] * value;
        }
      }
    }
    barrier();  // before the next keys overwrite the values, and the next scores these
  }

  partials[thread] = sum;
  barrier();
  if (share == 0) {
    float total = 0.0;
    for (uint i = 0; i < sharers; ++i) total += partials[row * sharers + i];
    corrections[row] = total;
    if (store_lse && first_query + row < p.queries) {
      lse[(batch * p.heads + head) * p.queries + first_query + row] = maximum + log(total);
    }
  }
  barrier();

  [[unroll]] for (uint i = 0; i < value_i; ++i) {
    const uint r = value_row + i * value_rows;
    const float total = corrections[r];
    const uint at = ((batch * p.queries + first_query + r) * p.heads + head) * value_width;
    [[unroll]] for (uint j = 0; j < value_j; ++j) {
      const vec4 mean = mixed[i * value_j + j] / total;
      const uint column = (value_column + j * value_columns) * 4;
      [[unroll]] for (uint s = 0; s < 4; ++s) {
        if (first_query + r < p.queries && column + s < value_width) result[at + column + s] = store_as(T, mean[s]);
      }
    }
  }
}
