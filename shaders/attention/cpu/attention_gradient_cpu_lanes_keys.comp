//! variant f32 needs=addresses,int64 bind=addresses access=rrrrrrrrww
//! variant f32_gathers GATHERS=1 needs=addresses,int64,subgroup_control bind=addresses access=rrrrrrrrww
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x_id = 0) in;
layout(constant_id = 9) const bool wide = false;  // with GATHERS: all rows are 64-bit words
#include "lib/nonfinite.glsl"
#include "lib/rows.glsl"
#include "lib/philox.glsl"
#include "attention_gradient_cpu_lanes.h"

// The keys' and values' gradients: attention_gradient_cpu_lanes_queries.comp with the sides changed.
//
//   workgroup  as many keys as it has lanes, of one head (y) of one image (z)
//   lane       one key: its k and v and their gradients, in registers
//   step       block queries: the weights exp(score - lse) that they give the key, the weights' gradients,
//              and what these give k and v
layout(constant_id = 1) const uint key_width = 8;
layout(constant_id = 2) const uint value_width = 8;
layout(constant_id = 3) const uint block = 8;
layout(constant_id = 4) const uint q_stride = 8;  // elements between the rows of q, k and v
layout(constant_id = 5) const uint k_stride = 8;
layout(constant_id = 6) const uint v_stride = 8;
layout(constant_id = 7) const bool drop = false;
layout(constant_id = 8) const uint result_stride = 8;  // of the result's gradient
layout(constant_id = 10) const bool bias_table = false;  // of scores: see lib/relative_bias.glsl
layout(constant_id = 11) const uint bias_height = 1;
layout(constant_id = 12) const uint bias_width = 1;
layout(constant_id = 13) const uint bias_first = 0;
#include "lib/relative_bias.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Result { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Step { uint words[]; };
layout(push_constant) uniform Push {
  Rows q;
  Rows k;
  Rows v;
  Rows lse;
  Rows result_gradient;
  Rows deltas;
  Step step;
  Rows bias;
  Result k_gradient;
  Result v_gradient;
  AttentionGradientLanesParams p;
};

float key[key_width];
float value[value_width];
float key_sums[key_width];
float value_sums[value_width];
MaskSource source;
Rows biases;  // of the head
uint number;  // of the lane's key
uint statistics;  // of the head's first query

// Takes in `count` queries from their rows and statistics on, the first of which is number `statistic` of all
// heads' and images'; count is a constant wherever this is called.
void answer(Rows query_rows, Rows given_rows, Rows log_sums, Rows delta_rows, uint statistic, const uint count) {
  float weight[block];
  float factor[block];  // of what dropout makes of the weight
  float gradient[block];
  [[unroll]] for (uint j = 0; j < count; ++j) {
    weight[j] = 0.0;
    gradient[j] = 0.0;
  }
  [[unroll]] for (uint d = 0; d < key_width; d += span) {
    [[unroll]] for (uint j = 0; j < count; ++j) {
      const Span query = load_span(query_rows, j * q_stride + d);
      [[unroll]] for (uint i = 0; i < span; ++i) {
        if (d + i < key_width) weight[j] += key[d + i] * of_span(query, i);
      }
    }
  }
  if (bias_table) {
    [[unroll]] for (uint j = 0; j < count; ++j) {
      weight[j] += biases.v[bias_row(statistic - statistics + j, number) * p.heads];
    }
  }
  [[unroll]] for (uint j = 0; j < count; ++j) weight[j] = exp_or_nan(weight[j] - load_one(log_sums, j));
  if (drop) {
    [[unroll]] for (uint j = 0; j < count; ++j) {
      factor[j] = kept_four(source, number / 4, statistic + j)[number % 4] ? p.drop_factor : 0.0;
    }
  }
  [[unroll]] for (uint d = 0; d < value_width; d += span) {
    [[unroll]] for (uint j = 0; j < count; ++j) {
      const float applied = drop ? weight[j] * factor[j] : weight[j];
      const Span given = load_span(given_rows, j * result_stride + d);
      [[unroll]] for (uint i = 0; i < span; ++i) {
        if (d + i < value_width) {
          gradient[j] += value[d + i] * of_span(given, i);
          value_sums[d + i] += applied * of_span(given, i);
        }
      }
    }
  }
  [[unroll]] for (uint j = 0; j < count; ++j) {
    if (drop) gradient[j] *= factor[j];
    gradient[j] = weight[j] * (gradient[j] - load_one(delta_rows, j));
  }
  [[unroll]] for (uint d = 0; d < key_width; d += span) {
    [[unroll]] for (uint j = 0; j < count; ++j) {
      const Span query = load_span(query_rows, j * q_stride + d);
      [[unroll]] for (uint i = 0; i < span; ++i) {
        if (d + i < key_width) key_sums[d + i] += gradient[j] * of_span(query, i);
      }
    }
  }
}

void main() {
  const uint asked = gl_GlobalInvocationID.x;
  const uint head = gl_WorkGroupID.y;
  const uint image = gl_WorkGroupID.z;
  number = min(asked, p.keys - 1);
  const uint row = image * p.keys + number;

  const uint key_at = row * k_stride + p.k_offset + head * key_width;
  const uint value_at = row * v_stride + p.v_offset + head * value_width;
  Rows my_key = offset_by(k, key_at);
  Rows my_value = offset_by(v, value_at);
  [[unroll]] for (uint d = 0; d < key_width; ++d) {
    key[d] = my_key.v[d] * p.scale;
    key_sums[d] = 0.0;
  }
  [[unroll]] for (uint d = 0; d < value_width; ++d) {
    value[d] = my_value.v[d];
    value_sums[d] = 0.0;
  }

  Rows query_rows = offset_by(q, image * p.queries * q_stride + p.q_offset + head * key_width);
  Rows given_rows = offset_by(result_gradient, image * p.queries * result_stride + head * value_width);
  biases = offset_by(bias, head);
  statistics = (image * p.heads + head) * p.queries;
  Rows log_sums = offset_by(lse, statistics);
  Rows delta_rows = offset_by(deltas, statistics);
  if (drop) source = mask_source(step.words, p.drop_stream, p.drop_threshold);
  const uint whole = p.queries / block;
  if (whole > 0) {
    uint turn = 0;
    do {
      answer(query_rows, given_rows, log_sums, delta_rows, statistics + turn * block, block);
      query_rows = offset_by(query_rows, block * q_stride);
      given_rows = offset_by(given_rows, block * result_stride);
      log_sums = offset_by(log_sums, block);
      delta_rows = offset_by(delta_rows, block);
    } while (++turn < whole);
  }
  uint left = p.queries % block;
  if (left > 0) {
    do {
      answer(query_rows, given_rows, log_sums, delta_rows, statistics + p.queries - left, 1);
      query_rows = offset_by(query_rows, q_stride);
      given_rows = offset_by(given_rows, result_stride);
      log_sums = offset_by(log_sums, 1);
      delta_rows = offset_by(delta_rows, 1);
    } while (--left > 0);
  }

  if (asked >= p.keys) return;
  [[unroll]] for (uint d = 0; d < key_width; ++d) k_gradient.v[key_at + d] = key_sums[d] * p.scale;
  [[unroll]] for (uint d = 0; d < value_width; ++d) v_gradient.v[value_at + d] = value_sums[d];
}
