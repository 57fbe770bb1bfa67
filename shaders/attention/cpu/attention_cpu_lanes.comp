//! variant f32 T=float TR=float ELEMENT_BYTES=4 needs=addresses,int64 bind=addresses access=rrrrrww
//! variant f16_f32 T=float16_t TR=float ELEMENT_BYTES=2 needs=addresses,int64,storage16 bind=addresses access=rrrrrww
//! variant f16 T=float16_t TR=float16_t ELEMENT_BYTES=2 needs=addresses,int64,storage16 bind=addresses access=rrrrrww
//! variant f32_gathers GATHERS=1 T=float TR=float ELEMENT_BYTES=4 needs=addresses,int64,subgroup_control bind=addresses access=rrrrrww
//! variant f16_f32_gathers GATHERS=1 T=float16_t TR=float ELEMENT_BYTES=2 needs=addresses,int64,subgroup_control,storage16 bind=addresses access=rrrrrww
//! variant f16_gathers GATHERS=1 T=float16_t TR=float16_t ELEMENT_BYTES=2 needs=addresses,int64,subgroup_control,storage16 bind=addresses access=rrrrrww
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "lib/nonfinite.glsl"
#include "lib/types.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 12) const bool wide = false;  // with GATHERS: rows of keys and values are 64-bit words
#include "lib/rows.glsl"
#include "lib/philox.glsl"
#include "attention_cpu_lanes.h"

// softmax(q·kᵀ·scale)·v with online softmax, without shared memory and barriers, for devices that run a
// workgroup on a CPU core.
//
//   workgroup  as many queries as it has lanes, of one head (y) of one image (z)
//   lane       one query: its q, its output and its running maximum and sum, all in registers
//   step       block keys: their scores, one correction of the output, then their values
//
// Keys and values are f32, have the same address in every lane and constant offsets, so reading them costs
// nothing. The keys that are left over go one by one. The loops ask at their end whether they go on (see
// matmul_cpu_direct.comp), and one that had no turn to do does one under an empty mask: the plan keeps room
// behind keys and values for what that reads.
layout(constant_id = 1) const uint key_width = 8;
layout(constant_id = 2) const uint value_width = 8;
layout(constant_id = 3) const uint block = 8;
layout(constant_id = 4) const uint q_stride = 8;  // elements between the rows of q, k and v
layout(constant_id = 5) const uint k_stride = 8;
layout(constant_id = 6) const uint v_stride = 8;
layout(constant_id = 7) const bool store_lse = false;
// Where the result is the left side of a product: the blocks of matmul_cpu_direct.comp. 0 rows: no blocks.
layout(constant_id = 8) const uint block_rows = 0;
layout(constant_id = 9) const uint unroll = 16;
layout(constant_id = 10) const bool halves = false;  // blocks hold f32, of what f16 would hold
layout(constant_id = 11) const bool drop = false;    // then a step is whole fours of keys, or a half of one
layout(constant_id = 13) const bool causal = false;  // a query sees keys up to its own number
layout(constant_id = 14) const bool bias_table = false;  // of scores: see lib/relative_bias.glsl
layout(constant_id = 15) const uint bias_height = 1;
layout(constant_id = 16) const uint bias_width = 1;
layout(constant_id = 17) const uint bias_first = 0;
layout(constant_id = 18) const bool bias_rows = false;
#include "lib/relative_bias.glsl"

layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer Elements { T v[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) writeonly buffer Result { TR v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Floats { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Step { uint words[]; };
layout(push_constant) uniform Push {
  Elements q;
  Rows k;
  Rows v;
  Step step;
  Rows bias;
  Result result;
  Floats lse;
  AttentionLanesParams p;
};

const float infinity = 1.0 / 0.0;

float query[key_width];
float mixed[value_width];
float highest = -infinity;
float total = 0.0;
MaskSource source;
Rows biases;    // of the head
uint statistic;  // number of this lane's row among those of all heads and images

// Takes in `count` keys from their rows on, the first of which has the number first_key; count is a constant
// wherever this is called.
void attend(Rows key_rows, Rows value_rows, uint first_key, const uint count) {
  float weight[block];
  [[unroll]] for (uint j = 0; j < count; ++j) weight[j] = 0.0;
  [[unroll]] for (uint d = 0; d < key_width; d += span) {
    [[unroll]] for (uint j = 0; j < count; ++j) {
      const Span key = load_span(key_rows, j * k_stride + d);
      [[unroll]] for (uint i = 0; i < span; ++i) {
        if (d + i < key_width) weight[j] += query[d + i] * of_span(key, i);
      }
    }
  }
  if (bias_table) {
    const uint number = min(gl_GlobalInvocationID.x, p.queries - 1);
    [[unroll]] for (uint j = 0; j < count; ++j) weight[j] += biases.v[bias_row(number, first_key + j) * p.heads];
  }
  if (bias_rows) {
    [[unroll]] for (uint j = 0; j < count; ++j) {
      weight[j] += bias_of_key(bias.v, statistic, min(first_key + j, p.keys - 1));
    }
  }
  if (causal) {
    [[unroll]] for (uint j = 0; j < count; ++j) {
      if (first_key + j > gl_GlobalInvocationID.x) weight[j] = -infinity;
    }
  }
  float new_highest = highest;
  [[unroll]] for (uint j = 0; j < count; ++j) new_highest = max(new_highest, weight[j]);
  // Where every score so far is -Inf, nothing may be subtracted: -Inf + Inf would be NaN.
  const float shift = new_highest == -infinity ? 0.0 : new_highest;
  const float correction = exp(highest - shift);
  highest = new_highest;
  total *= correction;
  float distances = 0.0;  // NaN where one is: that of a NaN or +inf
  [[unroll]] for (uint j = 0; j < count; ++j) {
    const float distance = weight[j] - shift;
    distances += distance;
    weight[j] = exp(distance);
    total += weight[j];
  }
  total = nan_or(distances, total);
  if (drop) {
    bvec4 kept;
    [[unroll]] for (uint j = 0; j < count; ++j) {
      if (j % 4 == 0) kept = kept_four(source, (first_key + j) / 4, statistic);
      weight[j] = kept[count % 4 == 0 ? j % 4 : (first_key + j) % 4] ? weight[j] * p.drop_factor : 0.0;
    }
  }
  [[unroll]] for (uint d = 0; d < value_width; d += span) {
    [[unroll]] for (uint i = 0; i < span; ++i) {
      if (d + i < value_width) mixed[d + i] *= correction;
    }
    [[unroll]] for (uint j = 0; j < count; ++j) {
      const Span value = load_span(value_rows, j * v_stride + d);
      [[unroll]] for (uint i = 0; i < span; ++i) {
        if (d + i < value_width) mixed[d + i] += weight[j] * of_span(value, i);
      }
    }
  }
}

void main() {
  const uint asking = gl_GlobalInvocationID.x;
  const uint head = gl_WorkGroupID.y;
  const uint image = gl_WorkGroupID.z;
  const uint row = image * p.queries + min(asking, p.queries - 1);

  Elements mine = Elements(uint64_t(q) + uint64_t(ELEMENT_BYTES) * (row * q_stride + p.q_offset + head * key_width));
  [[unroll]] for (uint d = 0; d < key_width; ++d) query[d] = load_float(mine.v[d]) * p.scale;
  [[unroll]] for (uint d = 0; d < value_width; ++d) mixed[d] = 0.0;

  Rows key_rows = offset_by(k, image * p.keys * k_stride + p.k_offset + head * key_width);
  Rows value_rows = offset_by(v, image * p.keys * v_stride + p.v_offset + head * value_width);
  biases = offset_by(bias, head);
  statistic = (image * p.heads + head) * p.queries + min(asking, p.queries - 1);
  if (drop) source = mask_source(step.words, p.drop_stream, p.drop_threshold);
  // Keys behind the workgroup's last query aren't looked at.
  const uint seen = causal ? min(p.keys, (gl_WorkGroupID.x + 1) * gl_WorkGroupSize.x) : p.keys;
  const uint whole = seen / block;
  if (whole > 0) {
    uint turn = 0;
    do {
      attend(key_rows, value_rows, turn * block, block);
      key_rows = offset_by(key_rows, block * k_stride);
      value_rows = offset_by(value_rows, block * v_stride);
    } while (++turn < whole);
  }
  uint left = seen % block;
  if (left > 0) {
    do {
      attend(key_rows, value_rows, seen - left, 1);
      key_rows = offset_by(key_rows, k_stride);
      value_rows = offset_by(value_rows, v_stride);
    } while (--left > 0);
  }

  if (asking >= p.queries) return;
  if (block_rows == 0) {
    const uint at = (row * p.heads + head) * value_width;
    [[unroll]] for (uint d = 0; d < value_width; ++d) result.v[at + d] = store_as(TR, mixed[d] / total);
  } else {
    const uint steps = p.heads * value_width / unroll;
    const uint at = (row / block_rows * steps * block_rows + row % block_rows) * unroll;
    [[unroll]] for (uint d = 0; d < value_width; ++d) {
      const uint column = head * value_width + d;
      const float y = mixed[d] / total;
      result.v[at + column / unroll * block_rows * unroll + column % unroll] =
          store_as(TR, halves ? rounded_to_half(y) : y);
    }
  }
  if (store_lse) lse.v[statistic] = nan_or(total, highest + log(total));
}
