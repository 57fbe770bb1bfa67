//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
// One query's attention weights exp(scale * q . k + bias - lse) for the patches, in every head, and their mean, as
// pixels; workgroups: parts of a picture (x), heads and the mean (y). Each computes its map's weights anew:
// that is little beside the pixels, and no weight has to be stored for it.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "attention_heat.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 64;
layout(constant_id = 1) const uint cells = 196;
layout(constant_id = 2) const uint grid_width = 14;
layout(constant_id = 3) const uint key_width = 64;
layout(constant_id = 4) const bool bias_table = false;  // of scores: see lib/relative_bias.glsl
layout(constant_id = 5) const uint bias_height = 1;
layout(constant_id = 6) const uint bias_width = 1;
layout(constant_id = 7) const uint bias_first = 0;
layout(constant_id = 8) const bool bias_rows = false;
#include "lib/relative_bias.glsl"

layout(push_constant) uniform Push { AttentionHeatParams p; };
layout(set = 0, binding = 0) readonly buffer Q { T q[]; };
layout(set = 0, binding = 1) readonly buffer K { T k[]; };
layout(set = 0, binding = 2) readonly buffer Lse { float lse[]; };
layout(set = 0, binding = 3) readonly buffer Choice { uint choice[]; };
layout(set = 0, binding = 4) readonly buffer Colors { uint colors[]; };
layout(set = 0, binding = 5) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 6) writeonly buffer Pixels { uint pixels[]; };
layout(set = 0, binding = 7) writeonly buffer Numbers { float numbers[]; };
#include "lib/heat.glsl"

float weight(uint head, uint cell) {
  const uint query = min(choice[0], p.queries - 1);
  const uint q_at = query * p.q_stride + p.q_offset + head * key_width;
  const uint k_at = (p.first_key + cell) * p.k_stride + p.k_offset + head * key_width;
  float sum = 0.0;
  for (uint d = 0; d < key_width; ++d) sum += load_float(q[q_at + d]) * load_float(k[k_at + d]);
  sum *= p.scale;
  if (bias_table) sum += bias[bias_row(query, p.first_key + cell) * p.heads + head];
  if (bias_rows) sum += bias_of_key(bias, head * p.queries + query, p.first_key + cell);
  return exp_or_nan(sum - lse[head * p.queries + query]);
}

float number_of(uint map, uint cell) {
  if (map < p.heads) return weight(map, cell);
  float sum = 0.0;
  for (uint head = 0; head < p.heads; ++head) sum += weight(head, cell);
  return sum / float(p.heads);
}

void main() { paint(gl_WorkGroupID.y, gl_WorkGroupID.x, gl_NumWorkGroups.x); }
