//! variant f32 T=float ELEMENT_BYTES=4 needs=addresses,int64 bind=addresses access=rrrww
//! variant f16 T=float16_t ELEMENT_BYTES=2 needs=addresses,int64,storage16 bind=addresses access=rrrww
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "lib/types.glsl"
#include "attention_lanes.h"

// softmax(q·kᵀ·scale)·v with online softmax, without shared memory and barriers, for devices that run a
// workgroup on a CPU core.
//
//   workgroup  as many queries as it has lanes, of one head (y) of one image (z)
//   lane       one query: its q, its output and its running maximum and sum, all in registers
//   step       block keys: their scores, one correction of the output, then their values
//
// Keys and values have the same address in every lane and constant offsets, so reading them costs
// nothing. As the loop's trip count has to be a constant (see matmul_direct.comp), so has the number of
// keys; the keys that are left over get a step of their own.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint key_width = 8;
layout(constant_id = 2) const uint value_width = 8;
layout(constant_id = 3) const uint keys = 8;
layout(constant_id = 4) const uint block = 8;
layout(constant_id = 5) const uint q_stride = 8;  // elements between the rows of q, k and v
layout(constant_id = 6) const uint k_stride = 8;
layout(constant_id = 7) const uint v_stride = 8;
layout(constant_id = 8) const bool store_lse = false;

layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer Elements { T v[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) writeonly buffer Result { T v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Floats { float v[]; };
layout(push_constant) uniform Push {
  Elements q;
  Elements k;
  Elements v;
  Result result;
  Floats lse;
  AttentionLanesParams p;
};

const float infinity = 1.0 / 0.0;

Elements offset_by(Elements base, uint elements) {
  return Elements(uint64_t(base) + uint64_t(ELEMENT_BYTES) * elements);
}

float query[key_width];
float mixed[value_width];
float highest = -infinity;
float total = 0.0;

// Takes in `count` keys from their rows on; count is a constant wherever this is called.
void attend(Elements key_rows, Elements value_rows, const uint count) {
  float weight[block];
  float new_highest = highest;
  [[unroll]] for (uint j = 0; j < count; ++j) {
    float score = 0.0;
    [[unroll]] for (uint d = 0; d < key_width; ++d) score += query[d] * load_float(key_rows.v[j * k_stride + d]);
    weight[j] = score;
    new_highest = max(new_highest, score);
  }
  // Where every score so far is -Inf, nothing may be subtracted: -Inf + Inf would be NaN.
  const float shift = new_highest == -infinity ? 0.0 : new_highest;
  const float correction = exp(highest - shift);
  highest = new_highest;
  total *= correction;
  [[unroll]] for (uint j = 0; j < count; ++j) {
    weight[j] = exp(weight[j] - shift);
    total += weight[j];
  }
  [[unroll]] for (uint d = 0; d < value_width; ++d) {
    float sum = mixed[d] * correction;
    [[unroll]] for (uint j = 0; j < count; ++j) sum += weight[j] * load_float(value_rows.v[j * v_stride + d]);
    mixed[d] = sum;
  }
}

void main() {
  const uint asking = gl_GlobalInvocationID.x;
  const uint head = gl_WorkGroupID.y;
  const uint image = gl_WorkGroupID.z;
  const uint row = image * p.queries + min(asking, p.queries - 1);

  Elements mine = offset_by(q, row * q_stride + p.q_offset + head * key_width);
  [[unroll]] for (uint d = 0; d < key_width; ++d) query[d] = load_float(mine.v[d]) * p.scale;
  [[unroll]] for (uint d = 0; d < value_width; ++d) mixed[d] = 0.0;

  Elements key_rows = offset_by(k, image * keys * k_stride + p.k_offset + head * key_width);
  Elements value_rows = offset_by(v, image * keys * v_stride + p.v_offset + head * value_width);
  const uint whole = keys / block * block;
  [[dont_unroll]] for (uint first = 0; first < whole; first += block) {
    attend(offset_by(key_rows, first * k_stride), offset_by(value_rows, first * v_stride), block);
  }
  if (whole < keys) {
    attend(offset_by(key_rows, whole * k_stride), offset_by(value_rows, whole * v_stride), keys - whole);
  }

  if (asking >= p.queries) return;
  const uint at = (row * p.heads + head) * value_width;
  [[unroll]] for (uint d = 0; d < value_width; ++d) result.v[at + d] = store_as(T, mixed[d] / total);
  if (store_lse) lse.v[(image * p.heads + head) * p.queries + asking] = highest + log(total);
}
