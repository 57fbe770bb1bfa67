//! variant f32 needs=addresses,int64,subgroup_control bind=addresses access=rrrrrrrrwww
//! variant f32_gathers GATHERS=1 needs=addresses,int64,subgroup_control bind=addresses access=rrrrrrrrwww
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
layout(local_size_x_id = 0) in;  // lanes
layout(constant_id = 12) const bool wide = false;  // with GATHERS: the queries' side lies in 64-bit words
#include "lib/nonfinite.glsl"
#include "lib/rows.glsl"
#include "lib/quads.glsl"
#include "lib/philox.glsl"
#include "attention_gradient_cpu_lanes.h"

// All gradients of few keys with narrow heads, in one pass that computes each weight once, for devices that run
// a workgroup on a CPU core:
//
//   workgroup  one subgroup: one head (x) of one image (y)
//   lane       of every `lanes` keys one: its k and v and their gradients
//   step       block queries, which all lanes read at the same address: their weights exp(score - lse), the
//              weights' gradients weight * (dout . v - delta) with delta = dout . out, what these give k and v,
//              and what they give q, summed over the lane's keys and then over the lanes
//
// Four random words decide on four keys of one query. With four queries a step each of four lanes draws for
// another query, and the lanes tell each other.
//
// The queries that are left over go one by one; of the loops, see attention_cpu_lanes.comp.
layout(constant_id = 1) const uint lanes = 8;  // of a subgroup, which has exactly this size: a power of two
layout(constant_id = 2) const uint key_width = 8;
layout(constant_id = 3) const uint value_width = 8;
layout(constant_id = 4) const uint block = 2;
layout(constant_id = 5) const uint turns = 1;     // keys of a lane
layout(constant_id = 6) const uint q_stride = 8;  // elements between the rows of q, k, v and the result
layout(constant_id = 7) const uint k_stride = 8;
layout(constant_id = 8) const uint v_stride = 8;
layout(constant_id = 9) const uint result_stride = 8;
layout(constant_id = 10) const bool drop = false;
layout(constant_id = 11) const bool pairs = false;  // keys and values lie in whole 64-bit words
layout(constant_id = 13) const bool bias_table = false;  // of scores: see lib/relative_bias.glsl
layout(constant_id = 14) const uint bias_height = 1;
layout(constant_id = 15) const uint bias_width = 1;
layout(constant_id = 16) const uint bias_first = 0;
#include "lib/relative_bias.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Result { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Step { uint words[]; };
layout(push_constant) uniform Push {
  Rows q;
  Rows k;
  Rows v;
  Rows result;  // the attention's
  Rows lse;
  Rows result_gradient;
  Step step;
  Rows bias;
  Result q_gradient;
  Result k_gradient;
  Result v_gradient;
  AttentionGradientLanesParams p;
};

const uint key_spans = (key_width + span - 1) / span, value_spans = (value_width + span - 1) / span;
const uint padded_sums = (block * key_width + lanes - 1) / lanes * lanes;

float key[turns * key_width];  // times the scale
float value[turns * value_width];
float key_sums[turns * key_width];
float value_sums[turns * value_width];
float query_sums[padded_sums];
MaskSource source;
Rows biases;  // of the head
uint lane;

uint key_of(uint turn) { return min(turn * lanes + lane, p.keys - 1); }

// The workgroup's rows of the queries' side, from the next query on.
Rows query_rows, result_rows, given_rows, log_sums;
uint statistic;    // its number among all heads' and images'
uint query;        // and in its own head
uint gradient_at;  // where its gradient lies

// Of as many sums as there are lanes each lane ends up with one: half of them go to the other half of the lanes
// each time. Not a loop, which drivers don't unroll.
#define HALVE(OTHER)                                                                              \
  if (lanes > OTHER) {                                                                            \
    const bool upper = (lane & OTHER) != 0;                                                       \
    [[unroll]] for (uint i = 0; i < OTHER; ++i) {                                                 \
      const float low = query_sums[first + i], high = query_sums[first + i + OTHER];              \
      query_sums[first + i] = (upper ? high : low) + subgroupShuffleXor(upper ? low : high, OTHER); \
    }                                                                                             \
  }

// Takes in `count` queries, a constant wherever this is called.
void answer(const uint count) {
  float log_sum[block];
  float delta[block];
  Span queries[block * key_spans];
  Span givens[block * value_spans];
  [[unroll]] for (uint j = 0; j < count; ++j) {
    log_sum[j] = load_one(log_sums, j);
    delta[j] = 0.0;
    [[unroll]] for (uint s = 0; s < key_spans; ++s) {
      queries[j * key_spans + s] = load_span(query_rows, j * q_stride + s * span);
    }
    [[unroll]] for (uint s = 0; s < value_spans; ++s) {
      const Span given = load_span(given_rows, j * result_stride + s * span);
      const Span result = load_span(result_rows, j * result_stride + s * span);
      [[unroll]] for (uint i = 0; i < span; ++i) {
        if (s * span + i < value_width) delta[j] += of_span(given, i) * of_span(result, i);
      }
      givens[j * value_spans + s] = given;
    }
  }
  [[unroll]] for (uint i = 0; i < padded_sums; ++i) query_sums[i] = 0.0;
  [[unroll]] for (uint t = 0; t < turns; ++t) {
    const uint number = t * lanes + lane;
    uint kept = 0;  // of four queries: a bit for each of the four keys that the lane's is one of
    if (drop && count == 4) {
      const bvec4 four = kept_four(source, number / 4, statistic + lane % 4);
      kept = uint(four.x) | uint(four.y) << 1 | uint(four.z) << 2 | uint(four.w) << 3;
    }
    [[unroll]] for (uint j = 0; j < count; ++j) {
      float weight = 0.0;
      [[unroll]] for (uint d = 0; d < key_width; ++d) {
        weight += key[t * key_width + d] * of_span(queries[j * key_spans + d / span], d % span);
      }
      if (bias_table) weight += biases.v[bias_row(query + j, min(number, p.keys - 1)) * p.heads];
      weight = exp_or_nan(weight - log_sum[j]);
      float factor = 1.0;  // of what dropout makes of the weight
      if (drop && count == 4) {
        const uint bits = subgroupShuffle(kept, lane / 4 * 4 + j);
        factor = (bits >> (lane % 4) & 1) != 0 ? p.drop_factor : 0.0;
      } else if (drop) {
        factor = kept_four(source, number / 4, statistic + j)[number % 4] ? p.drop_factor : 0.0;
      }
      float gradient = 0.0;
      const float applied = drop ? weight * factor : weight;
      [[unroll]] for (uint d = 0; d < value_width; ++d) {
        const float given = of_span(givens[j * value_spans + d / span], d % span);
        gradient += value[t * value_width + d] * given;
        value_sums[t * value_width + d] += applied * given;
      }
      if (drop) gradient *= factor;
      gradient = weight * (gradient - delta[j]);
      // Lanes without a key have the last one again, which may count but once.
      if (t == turns - 1) gradient = number < p.keys ? gradient : 0.0;
      [[unroll]] for (uint d = 0; d < key_width; ++d) {
        key_sums[t * key_width + d] += gradient * of_span(queries[j * key_spans + d / span], d % span);
        query_sums[j * key_width + d] += gradient * key[t * key_width + d];
      }
    }
  }
  [[unroll]] for (uint first = 0; first < count * key_width; first += lanes) {
    HALVE(8)
    HALVE(4)
    HALVE(2)
    HALVE(1)
    const uint mine = first + lane;
    if (mine < count * key_width) {
      q_gradient.v[gradient_at + mine / key_width * q_stride + mine % key_width] = query_sums[first];
    }
  }
  query_rows = offset_by(query_rows, count * q_stride);
  result_rows = offset_by(result_rows, count * result_stride);
  given_rows = offset_by(given_rows, count * result_stride);
  log_sums = offset_by(log_sums, count);
  statistic += count;
  query += count;
  gradient_at += count * q_stride;
}

vec2 pair_of(Rows rows, uint at) {
  const uvec2 words = unpack32(InWords(rows).at[at / 2]);
  return vec2(uintBitsToFloat(words.x), uintBitsToFloat(words.y));
}

void main() {
  const uint head = gl_WorkGroupID.x;
  const uint image = gl_WorkGroupID.y;
  lane = gl_SubgroupInvocationID;
  const uint keys_at = image * p.keys * k_stride + p.k_offset + head * key_width;
  const uint values_at = image * p.keys * v_stride + p.v_offset + head * value_width;
  [[unroll]] for (uint t = 0; t < turns; ++t) {
    const uint key_at = keys_at + key_of(t) * k_stride;
    const uint value_at = values_at + key_of(t) * v_stride;
    if (pairs) {
      [[unroll]] for (uint d = 0; d < key_width; d += 2) {
        const vec2 two = pair_of(k, key_at + d) * p.scale;
        key[t * key_width + d] = two.x;
        key[t * key_width + d + 1] = two.y;
      }
      [[unroll]] for (uint d = 0; d < value_width; d += 2) {
        const vec2 two = pair_of(v, value_at + d);
        value[t * value_width + d] = two.x;
        value[t * value_width + d + 1] = two.y;
      }
    } else {
      [[unroll]] for (uint d = 0; d < key_width; ++d) key[t * key_width + d] = k.v[key_at + d] * p.scale;
      [[unroll]] for (uint d = 0; d < value_width; ++d) value[t * value_width + d] = v.v[value_at + d];
    }
  }
  [[unroll]] for (uint i = 0; i < turns * key_width; ++i) key_sums[i] = 0.0;
  [[unroll]] for (uint i = 0; i < turns * value_width; ++i) value_sums[i] = 0.0;

  gradient_at = image * p.queries * q_stride + p.q_offset + head * key_width;
  query_rows = offset_by(q, gradient_at);
  const uint result_at = image * p.queries * result_stride + head * value_width;
  result_rows = offset_by(result, result_at);
  given_rows = offset_by(result_gradient, result_at);
  statistic = (image * p.heads + head) * p.queries;
  query = 0;
  biases = offset_by(bias, head);
  log_sums = offset_by(lse, statistic);
  if (drop) source = mask_source(step.words, p.drop_stream, p.drop_threshold);
  uint whole = p.queries / block;
  if (whole > 0) {
    do {
      answer(block);
    } while (--whole > 0);
  }
  uint left = p.queries % block;
  if (left > 0) {
    do {
      answer(1);
    } while (--left > 0);
  }

  [[unroll]] for (uint t = 0; t < turns; ++t) {
    const uint number = t * lanes + lane;
    if (number < p.keys) {
      const uint key_at = keys_at + number * k_stride;
      const uint value_at = values_at + number * v_stride;
      if (pairs) {
        [[unroll]] for (uint d = 0; d < key_width; d += 2) {
          const vec2 two = vec2(key_sums[t * key_width + d], key_sums[t * key_width + d + 1]) * p.scale;
          OutWords(k_gradient).at[(key_at + d) / 2] = pack64(floatBitsToUint(two));
        }
        [[unroll]] for (uint d = 0; d < value_width; d += 2) {
          const vec2 two = vec2(value_sums[t * value_width + d], value_sums[t * value_width + d + 1]);
          OutWords(v_gradient).at[(value_at + d) / 2] = pack64(floatBitsToUint(two));
        }
      } else {
        [[unroll]] for (uint d = 0; d < key_width; ++d) {
          k_gradient.v[key_at + d] = key_sums[t * key_width + d] * p.scale;
        }
        [[unroll]] for (uint d = 0; d < value_width; ++d) {
          v_gradient.v[value_at + d] = value_sums[t * value_width + d];
        }
      }
    }
  }
}
