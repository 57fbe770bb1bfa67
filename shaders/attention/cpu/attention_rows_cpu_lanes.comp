//! variant f32 T=float ELEMENT_BYTES=4 needs=addresses,int64 bind=addresses access=rrrrw
//! variant f16 T=float16_t ELEMENT_BYTES=2 needs=addresses,int64,storage16 bind=addresses access=rrrrw
//! variant f32_gathers GATHERS=1 T=float ELEMENT_BYTES=4 needs=addresses,int64,subgroup_control bind=addresses access=rrrrw
//! variant f16_gathers GATHERS=1 T=float16_t ELEMENT_BYTES=2 needs=addresses,int64,subgroup_control,storage16 bind=addresses access=rrrrw
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#ifdef GATHERS
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#endif
#include "lib/nonfinite.glsl"
#include "lib/types.glsl"
#include "attention/attention_rows.h"

// attention_rows.comp for devices that run a workgroup on a CPU core.
//
//   workgroup  as many keys as it has lanes (x), of one or of all heads and a step of rows, or all of
//              them (y), of one image (z)
//   lane       one key, in registers
//   step       block rows, whose queries have the same address in every lane, so reading them costs nothing
//              (with GATHERS it would: there each lane loads other elements and hands them to all, see lib/rows.glsl)
//
// The loops' trip counts have to be constants (see matmul_cpu_direct.comp). Rows past the last one are the
// last one again: computed, and neither counted nor stored.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint key_width = 64;
layout(constant_id = 2) const uint block = 16;
layout(constant_id = 3) const uint summed_heads = 1;  // heads, where their mean is asked for
layout(constant_id = 4) const uint summed_steps = 1;  // steps, where the mean of all rows is asked for
layout(constant_id = 5) const bool mean_rows = false;
layout(constant_id = 6) const bool bias_table = false;  // of scores: see lib/relative_bias.glsl
layout(constant_id = 7) const uint bias_height = 1;
layout(constant_id = 8) const uint bias_width = 1;
layout(constant_id = 9) const uint bias_first = 0;
layout(constant_id = 10) const bool bias_rows = false;
#include "lib/relative_bias.glsl"

layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer Elements { T v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Floats { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Result { float v[]; };
layout(push_constant) uniform Push {
  Elements q;
  Elements k;
  Floats lse;
  Floats bias;
  Result result;
  AttentionRowsParams p;
};

Elements offset_by(Elements base, uint elements) {
  return Elements(uint64_t(base) + uint64_t(ELEMENT_BYTES) * elements);
}

float sums[block];

// The product of this lane's key and a row that all lanes ask with.
float score_of(const float key[key_width], Elements asking) {
  float score = 0.0;
#ifdef GATHERS
  const uint span = gl_WorkGroupSize.x;  // one subgroup
  [[unroll]] for (uint d = 0; d < key_width; d += span) {
    const float own = load_float(asking.v[min(d + gl_SubgroupInvocationID, key_width - 1)]);
    [[unroll]] for (uint i = 0; i < span; ++i) {
      if (d + i < key_width) score += key[d + i] * subgroupBroadcast(own, i);
    }
  }
#else
  [[unroll]] for (uint d = 0; d < key_width; ++d) score += key[d] * load_float(asking.v[d]);
#endif
  return score;
}

void add_head(uint image, uint head, uint first_step, uint key_number) {
  float key[key_width];
  Elements mine = offset_by(k, (image * p.keys + key_number) * p.k_stride + p.k_offset + head * key_width);
  [[unroll]] for (uint d = 0; d < key_width; ++d) key[d] = load_float(mine.v[d]) * p.scale;

  [[dont_unroll]] for (uint s = 0; s < summed_steps; ++s) {
    [[unroll]] for (uint r = 0; r < block; ++r) {
      const uint row = (first_step + s) * block + r;
      const uint query = p.first_row + min(row, p.rows - 1);
      Elements asking = offset_by(q, (image * p.queries + query) * p.q_stride + p.q_offset + head * key_width);
      float score = score_of(key, asking);
      if (bias_table) score += bias.v[bias_row(query, key_number) * p.heads + head];
      const uint line = (image * p.heads + head) * p.queries + query;
      if (bias_rows) score += bias_of_key(bias.v, line, key_number);
      const float weight = exp_or_nan(score - lse.v[line]);
      sums[r] += row < p.rows ? weight : 0.0;
    }
  }
}

void main() {
  const uint heads_out = summed_heads > 1 ? 1 : p.heads;
  const uint key = gl_GlobalInvocationID.x;
  const uint head = gl_WorkGroupID.y % heads_out;
  const uint step = gl_WorkGroupID.y / heads_out;
  const uint image = gl_WorkGroupID.z;

  [[unroll]] for (uint r = 0; r < block; ++r) sums[r] = 0.0;
  [[dont_unroll]] for (uint h = 0; h < summed_heads; ++h) {
    add_head(image, head + h, step, min(key, p.keys - 1));
  }
  if (key >= p.keys) return;

  const uint map = image * heads_out + head;
  if (mean_rows) {
    float sum = 0.0;
    [[unroll]] for (uint r = 0; r < block; ++r) sum += sums[r];
    result.v[map * p.keys + key] = sum / float(summed_heads * p.rows);
  } else {
    [[unroll]] for (uint r = 0; r < block; ++r) {
      const uint row = step * block + r;
      if (row < p.rows) result.v[(map * p.rows + row) * p.keys + key] = sums[r] / float(summed_heads);
    }
  }
}
