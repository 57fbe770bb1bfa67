//! variant f32 needs=addresses,int64 bind=addresses access=rrrrrrrrww
//! variant f32_gathers GATHERS=1 needs=addresses,int64,subgroup_control bind=addresses access=rrrrrrrrww
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x_id = 0) in;
layout(constant_id = 8) const bool wide = false;  // with GATHERS: all rows are 64-bit words
#include "lib/nonfinite.glsl"
#include "lib/rows.glsl"
#include "lib/philox.glsl"
#include "attention_gradient_cpu_lanes.h"

// The queries' gradients, in the manner of attention_cpu_lanes.comp:
//
//   workgroup  as many queries as it has lanes, of one head (y) of one image (z)
//   lane       one query: its q, the gradient of its output and that of q, in registers
//   step       block keys: their weights exp(score - lse) again, the weights' gradients
//              weight * (dout . v - delta), and what these give q; delta is dout . out
//
// It also writes delta, which attention_gradient_cpu_lanes_keys.comp needs of every query.
layout(constant_id = 1) const uint key_width = 8;
layout(constant_id = 2) const uint value_width = 8;
layout(constant_id = 3) const uint block = 8;
layout(constant_id = 4) const uint q_stride = 8;  // elements between the rows of q, k and v
layout(constant_id = 5) const uint k_stride = 8;
layout(constant_id = 6) const uint v_stride = 8;
layout(constant_id = 7) const bool drop = false;  // then a step is whole fours of keys, or a half of one
layout(constant_id = 9) const bool bias_table = false;  // of scores: see lib/relative_bias.glsl
layout(constant_id = 10) const uint bias_height = 1;
layout(constant_id = 11) const uint bias_width = 1;
layout(constant_id = 12) const uint bias_first = 0;
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
  Result deltas;
  AttentionGradientLanesParams p;
};

float query[key_width];
float given[value_width];
float sums[key_width];
float log_sum;
float delta;
MaskSource source;
Rows biases;    // of the head
uint number;    // of the lane's query
uint statistic;  // number of this lane's row among those of all heads and images

// Takes in `count` keys from their rows on, the first of which has the number first_key; count is a constant
// wherever this is called.
void attend(Rows key_rows, Rows value_rows, uint first_key, const uint count) {
  float score[block];
  float gradient[block];
  [[unroll]] for (uint j = 0; j < count; ++j) {
    score[j] = 0.0;
    gradient[j] = 0.0;
  }
  [[unroll]] for (uint d = 0; d < key_width; d += span) {
    [[unroll]] for (uint j = 0; j < count; ++j) {
      const Span key = load_span(key_rows, j * k_stride + d);
      [[unroll]] for (uint i = 0; i < span; ++i) {
        if (d + i < key_width) score[j] += query[d + i] * of_span(key, i);
      }
    }
  }
  if (bias_table) {
    [[unroll]] for (uint j = 0; j < count; ++j) score[j] += biases.v[bias_row(number, first_key + j) * p.heads];
  }
  [[unroll]] for (uint d = 0; d < value_width; d += span) {
    [[unroll]] for (uint j = 0; j < count; ++j) {
      const Span value = load_span(value_rows, j * v_stride + d);
      [[unroll]] for (uint i = 0; i < span; ++i) {
        if (d + i < value_width) gradient[j] += given[d + i] * of_span(value, i);
      }
    }
  }
  if (drop) {
    bvec4 kept;
    [[unroll]] for (uint j = 0; j < count; ++j) {
      if (j % 4 == 0) kept = kept_four(source, (first_key + j) / 4, statistic);
      gradient[j] = kept[count % 4 == 0 ? j % 4 : (first_key + j) % 4] ? gradient[j] * p.drop_factor : 0.0;
    }
  }
  [[unroll]] for (uint j = 0; j < count; ++j) {
    gradient[j] = exp_or_nan(score[j] - log_sum) * (gradient[j] - delta);
  }
  [[unroll]] for (uint d = 0; d < key_width; d += span) {
    [[unroll]] for (uint j = 0; j < count; ++j) {
      const Span key = load_span(key_rows, j * k_stride + d);
      [[unroll]] for (uint i = 0; i < span; ++i) {
        if (d + i < key_width) sums[d + i] += gradient[j] * of_span(key, i);
      }
    }
  }
}

void main() {
  const uint asking = gl_GlobalInvocationID.x;
  const uint head = gl_WorkGroupID.y;
  const uint image = gl_WorkGroupID.z;
  number = min(asking, p.queries - 1);
  const uint row = image * p.queries + number;
  statistic = (image * p.heads + head) * p.queries + number;

  const uint at = row * q_stride + p.q_offset + head * key_width;
  Rows mine = offset_by(q, at);
  [[unroll]] for (uint d = 0; d < key_width; ++d) {
    query[d] = mine.v[d] * p.scale;
    sums[d] = 0.0;
  }
  Rows computed = offset_by(result, (row * p.heads + head) * value_width);
  Rows wanted = offset_by(result_gradient, (row * p.heads + head) * value_width);
  delta = 0.0;
  [[unroll]] for (uint d = 0; d < value_width; ++d) {
    given[d] = wanted.v[d];
    delta += given[d] * computed.v[d];
  }
  biases = offset_by(bias, head);
  log_sum = lse.v[statistic];
  if (drop) source = mask_source(step.words, p.drop_stream, p.drop_threshold);

  Rows key_rows = offset_by(k, image * p.keys * k_stride + p.k_offset + head * key_width);
  Rows value_rows = offset_by(v, image * p.keys * v_stride + p.v_offset + head * value_width);
  const uint whole = p.keys / block;
  if (whole > 0) {
    uint turn = 0;
    do {
      attend(key_rows, value_rows, turn * block, block);
      key_rows = offset_by(key_rows, block * k_stride);
      value_rows = offset_by(value_rows, block * v_stride);
    } while (++turn < whole);
  }
  uint left = p.keys % block;
  if (left > 0) {
    do {
      attend(key_rows, value_rows, p.keys - left, 1);
      key_rows = offset_by(key_rows, k_stride);
      value_rows = offset_by(value_rows, v_stride);
    } while (--left > 0);
  }

  if (asking >= p.queries) return;
  [[unroll]] for (uint d = 0; d < key_width; ++d) q_gradient.v[at + d] = sums[d] * p.scale;
  deltas.v[statistic] = delta;
}
