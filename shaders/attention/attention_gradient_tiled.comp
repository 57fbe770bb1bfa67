//! variant f32
// Attention's gradients, the scores computed again block by block. For GPUs. Runs twice: with own_keys off its own
// rows are queries, whose gradients it computes from all keys; with own_keys on they are keys, whose gradients and
// whose values' it computes from all queries.
//
//   grid        blocks of block_own rows of one head of one batch
//   workgroup   walks the others, block_other at a time. In shared memory, as in attention_tiled.comp: a chunk of the
//               columns of both sides, or a slice of the others' rows; and the factors of that slice
//   invocation  row r + i * rows of its own, column c + j * columns of the others: score_i x score_j of each product.
//               In its registers also the sums of its rows, vec4 c + j * columns of their columns
//   products    q . k gives the weights exp(scale * q . k - lse), dout . v what their gradients begin with:
//               weight * (dout . v - delta), where delta is dout . out
//   sums        the weights' gradients times the others' keys or queries; of own keys also the weights times dout
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "lib/tile.glsl"
#include "lib/philox.glsl"
#include "attention_gradient.h"

layout(push_constant) uniform Push { AttentionGradientParams p; };
layout(set = 0, binding = 0) readonly buffer OwnKey { vec4 own_key[]; };        // q, or k where own_keys
layout(set = 0, binding = 1) readonly buffer OwnValue { vec4 own_value[]; };    // the result's gradient, or v
layout(set = 0, binding = 2) readonly buffer OtherKey { vec4 other_key[]; };
layout(set = 0, binding = 3) readonly buffer OtherValue { vec4 other_value[]; };
layout(set = 0, binding = 4) readonly buffer Statistics { vec2 statistics[]; };  // of a query: lse, delta
layout(set = 0, binding = 5) readonly buffer Step { uint words[]; };
layout(set = 0, binding = 6) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 7) writeonly buffer KeyGradient { float key_gradient[]; };      // laid out as own_key
layout(set = 0, binding = 8) writeonly buffer ValueGradient { float value_gradient[]; };  // where own_keys

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint threads = 256;  // the same number
layout(constant_id = 2) const uint block_own = 64;
layout(constant_id = 3) const uint block_other = 64;
layout(constant_id = 4) const uint key_width = 64;
layout(constant_id = 5) const uint value_width = 64;
layout(constant_id = 6) const uint columns = 16;  // invocations along the others and along the sums' columns
layout(constant_id = 7) const uint chunk4 = 4;    // vec4 of the columns at a time
layout(constant_id = 8) const uint slice = 16;    // others whose rows are summed at a time: a multiple of columns and 4
layout(constant_id = 9) const bool aligned = false;  // every row of every head starts at a multiple of 4
layout(constant_id = 10) const bool own_keys = false;
layout(constant_id = 11) const bool drop = false;
layout(constant_id = 12) const bool bias_table = false;  // of scores: see lib/relative_bias.glsl
layout(constant_id = 13) const uint bias_height = 1;
layout(constant_id = 14) const uint bias_width = 1;
layout(constant_id = 15) const uint bias_first = 0;
#include "lib/relative_bias.glsl"

const uint key_width4 = (key_width + 3) / 4;
const uint value_width4 = (value_width + 3) / 4;
const uint chunk_stride = chunk4 | 1;
const uint key_slice_stride = key_width4 | 1;
const uint value_slice_stride = value_width4 | 1;
const uint slice_stride = key_slice_stride > value_slice_stride ? key_slice_stride : value_slice_stride;
const uint factor_stride = slice + 4;

const uint rows = threads / columns;
const uint score_i = block_own / rows;
const uint score_j = block_other / columns;
const uint slice_j = slice / columns;
const uint key_j = (key_width4 + columns - 1) / columns;
const uint value_j = (value_width4 + columns - 1) / columns;

const uint chunk_size = (block_own + block_other) * chunk_stride;
const uint slice_size = slice * slice_stride;
shared vec4 block[chunk_size > slice_size ? chunk_size : slice_size];
shared float factors[block_own * factor_stride];

// Four values from column on, of a row that starts at `start`; zeros from the width on.
#define FETCH(NAME, BUFFER, WIDTH)                                                          \
  vec4 NAME(uint start, uint column) {                                                      \
    const uint at = start + column;                                                         \
    if (aligned) return column < WIDTH ? BUFFER[at >> 2] : vec4(0.0);                       \
    return vec4(column < WIDTH ? element_of(BUFFER, at) : 0.0,                              \
                column + 1 < WIDTH ? element_of(BUFFER, at + 1) : 0.0,                      \
                column + 2 < WIDTH ? element_of(BUFFER, at + 2) : 0.0,                      \
                column + 3 < WIDTH ? element_of(BUFFER, at + 3) : 0.0);                     \
  }
FETCH(fetch_own_key, own_key, key_width)
FETCH(fetch_own_value, own_value, value_width)
FETCH(fetch_other_key, other_key, key_width)
FETCH(fetch_other_value, other_value, value_width)

// Adds to `products` those of own rows and others. Past the end, rows are the last one again: computed, but not
// stored, or their weights are replaced.
#define MULTIPLY(PRODUCTS, WIDTH4, FETCH_OWN, OWN_START, OWN_STRIDE, FETCH_OTHER, OTHER_START, OTHER_STRIDE)       \
  [[dont_unroll]] for (uint first = 0; first < WIDTH4; first += chunk4) {                                          \
    for (uint e = thread; e < block_own * chunk4; e += threads) {                                                  \
      const uint at = min(first_own + e / chunk4, p.own - 1) * OWN_STRIDE;                                         \
      block[e / chunk4 * chunk_stride + e % chunk4] = FETCH_OWN(OWN_START + at, (first + e % chunk4) * 4);         \
    }                                                                                                              \
    for (uint e = thread; e < block_other * chunk4; e += threads) {                                                \
      const uint at = min(first_other + e / chunk4, p.others - 1) * OTHER_STRIDE;                                  \
      block[(block_own + e / chunk4) * chunk_stride + e % chunk4] =                                                \
          FETCH_OTHER(OTHER_START + at, (first + e % chunk4) * 4);                                                 \
    }                                                                                                              \
    barrier();                                                                                                     \
    [[unroll]] for (uint d = 0; d < chunk4; ++d) {                                                                 \
      vec4 a[score_i];                                                                                             \
      [[unroll]] for (uint i = 0; i < score_i; ++i) a[i] = block[(row + i * rows) * chunk_stride + d];             \
      [[unroll]] for (uint j = 0; j < score_j; ++j) {                                                              \
        const vec4 b = block[(block_own + column + j * columns) * chunk_stride + d];                               \
        [[unroll]] for (uint i = 0; i < score_i; ++i) {                                                            \
          PRODUCTS[i * score_j + j] = multiply_add(a[i], b, PRODUCTS[i * score_j + j]);                            \
        }                                                                                                          \
      }                                                                                                            \
    }                                                                                                              \
    barrier();                                                                                                     \
  }

// Adds to `sums` a slice of the others' rows, each times its factor. Rows past the end are zero: their factors
// are, too, but 0 * NaN would not vanish. The next slice's factors move up, so that the array is only ever
// indexed by constants.
#define SUM_SLICE(SUMS, FACTORS, COUNT_J, WIDTH4, STRIDE4, FETCH_OTHER, OTHER_START, OTHER_STRIDE)                 \
  {                                                                                                                \
    [[unroll]] for (uint i = 0; i < score_i; ++i) {                                                                \
      [[unroll]] for (uint j = 0; j < slice_j; ++j) {                                                              \
        factors[(row + i * rows) * factor_stride + column + j * columns] = FACTORS[i * score_j + j];               \
      }                                                                                                            \
      [[unroll]] for (uint j = slice_j; j < score_j; ++j) {                                                        \
        FACTORS[i * score_j + j - slice_j] = FACTORS[i * score_j + j];                                             \
      }                                                                                                            \
    }                                                                                                              \
    for (uint e = thread; e < slice * WIDTH4; e += threads) {                                                      \
      const uint number = slice_other + e / WIDTH4;                                                                \
      vec4 four = vec4(0.0);                                                                                       \
      if (number < p.others) four = FETCH_OTHER(OTHER_START + number * OTHER_STRIDE, e % WIDTH4 * 4);              \
      block[e / WIDTH4 * STRIDE4 + e % WIDTH4] = four;                                                             \
    }                                                                                                              \
    barrier();                                                                                                     \
    [[dont_unroll]] for (uint other = 0; other < slice; other += 4) {                                              \
      vec4 four[score_i];                                                                                          \
      [[unroll]] for (uint i = 0; i < score_i; ++i) {                                                              \
        const uint at = (row + i * rows) * factor_stride + other;                                                  \
        four[i] = vec4(factors[at], factors[at + 1], factors[at + 2], factors[at + 3]);                            \
      }                                                                                                            \
      [[unroll]] for (uint j = 0; j < COUNT_J; ++j) {                                                              \
        /* Columns past the width repeat the last: computed, not stored. */                                        \
        const uint at = other * STRIDE4 + min(column + j * columns, WIDTH4 - 1);                                   \
        [[unroll]] for (uint n = 0; n < 4; ++n) {                                                                  \
          const vec4 value = block[at + n * STRIDE4];                                                              \
          [[unroll]] for (uint i = 0; i < score_i; ++i) SUMS[i * COUNT_J + j] += four[i][n] * value;               \
        }                                                                                                          \
      }                                                                                                            \
    }                                                                                                              \
    barrier();                                                                                                     \
  }

void main() {
  const uint work = linear_group();
  if (work >= p.blocks) return;
  const uint own_blocks = (p.own + block_own - 1) / block_own;
  const uint head = work / own_blocks % p.heads;
  const uint batch = work / own_blocks / p.heads;
  const uint first_own = work % own_blocks * block_own;
  const uint thread = gl_LocalInvocationIndex;
  const uint row = thread / columns;
  const uint column = thread % columns;

  const uint own_key_start = batch * p.own * p.own_key_stride + p.own_key_offset + head * key_width;
  const uint own_value_start = batch * p.own * p.own_value_stride + p.own_value_offset + head * value_width;
  const uint other_key_start = batch * p.others * p.other_key_stride + p.other_key_offset + head * key_width;
  const uint other_value_start = batch * p.others * p.other_value_stride + p.other_value_offset + head * value_width;
  const uint first_statistic = (batch * p.heads + head) * (own_keys ? p.others : p.own);

  vec4 key_sums[score_i * key_j];
  vec4 value_sums[own_keys ? score_i * value_j : 1];
  [[unroll]] for (uint i = 0; i < score_i * key_j; ++i) key_sums[i] = vec4(0.0);
  if (own_keys) {
    [[unroll]] for (uint i = 0; i < score_i * value_j; ++i) value_sums[own_keys ? i : 0] = vec4(0.0);
  }

  [[dont_unroll]] for (uint first_other = 0; first_other < p.others; first_other += block_other) {
    float weights[score_i * score_j];
    float gradients[score_i * score_j];
    [[unroll]] for (uint i = 0; i < score_i * score_j; ++i) {
      weights[i] = 0.0;
      gradients[i] = 0.0;
    }
    MULTIPLY(weights, key_width4, fetch_own_key, own_key_start, p.own_key_stride, fetch_other_key, other_key_start,
             p.other_key_stride)
    MULTIPLY(gradients, value_width4, fetch_own_value, own_value_start, p.own_value_stride, fetch_other_value,
             other_value_start, p.other_value_stride)

    [[unroll]] for (uint i = 0; i < score_i; ++i) {
      [[unroll]] for (uint j = 0; j < score_j; ++j) {
        const uint mine = min(first_own + row + i * rows, p.own - 1);
        const uint other = first_other + column + j * columns;
        const bool is_other = other < p.others;
        const uint number = first_statistic + (own_keys ? min(other, p.others - 1) : mine);
        const vec2 lse_and_delta = statistics[number];
        const uint at = i * score_j + j;
        float score = weights[at] * p.scale;
        if (bias_table) {
          const uint row_of_bias = own_keys ? bias_row(other, mine) : bias_row(mine, other);
          score += bias[row_of_bias * p.heads + head];
        }
        weights[at] = is_other ? exp_or_nan(score - lse_and_delta.x) : 0.0;
        float factor = 1.0;
        if (drop) {
          const uint key = own_keys ? mine : other;
          const bool kept = kept_four(mask_source(words, p.drop_stream, p.drop_threshold), key / 4, number)[key % 4];
          factor = kept ? p.drop_factor : 0.0;
        }
        gradients[at] = is_other ? weights[at] * (gradients[at] * factor - lse_and_delta.y) : 0.0;
        weights[at] *= factor;
      }
    }

    const uint end = min(first_other + block_other, p.others);
    [[dont_unroll]] for (uint slice_other = first_other; slice_other < end; slice_other += slice) {
      SUM_SLICE(key_sums, gradients, key_j, key_width4, key_slice_stride, fetch_other_key, other_key_start,
                p.other_key_stride)
      if (own_keys) {
        SUM_SLICE(value_sums, weights, value_j, value_width4, value_slice_stride, fetch_other_value,
                  other_value_start, p.other_value_stride)
      }
    }
  }

  [[unroll]] for (uint i = 0; i < score_i; ++i) {
    const uint mine = first_own + row + i * rows;
    if (mine < p.own) {
      [[unroll]] for (uint j = 0; j < key_j; ++j) {
        const vec4 sum = key_sums[i * key_j + j] * p.scale;
        const uint first = (column + j * columns) * 4;
        const uint at = own_key_start + mine * p.own_key_stride + first;
        [[unroll]] for (uint n = 0; n < 4; ++n) {
          if (first + n < key_width) key_gradient[at + n] = sum[n];
        }
      }
      if (own_keys) {
        [[unroll]] for (uint j = 0; j < value_j; ++j) {
          const vec4 sum = value_sums[own_keys ? i * value_j + j : 0];
          const uint first = (column + j * columns) * 4;
          const uint at = own_value_start + mine * p.own_value_stride + first;
          [[unroll]] for (uint n = 0; n < 4; ++n) {
            if (first + n < value_width) value_gradient[at + n] = sum[n];
          }
        }
      }
    }
  }
}
