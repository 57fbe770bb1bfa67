//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
// scores[b][h][n][m] = scale * q . k + bias, one invocation each.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "attention.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool bias_table = false;  // of scores: see lib/relative_bias.glsl
layout(constant_id = 2) const uint bias_height = 1;
layout(constant_id = 3) const uint bias_width = 1;
layout(constant_id = 4) const uint bias_first = 0;
layout(constant_id = 5) const bool bias_rows = false;
#include "lib/relative_bias.glsl"

layout(push_constant) uniform Push { AttentionParams p; };
layout(set = 0, binding = 0) readonly buffer Q { T q[]; };
layout(set = 0, binding = 1) readonly buffer K { T k[]; };
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3) writeonly buffer Scores { float scores[]; };

void main() {
  const uint at = linear_invocation();
  if (at >= p.blocks) return;
  const uint key = at % p.keys;
  const uint query = at / p.keys % p.queries;
  const uint head = at / p.keys / p.queries % p.heads;
  const uint batch = at / p.keys / p.queries / p.heads;
  const uint q_at = (batch * p.queries + query) * p.q_stride + p.q_offset + head * p.key_width;
  const uint k_at = (batch * p.keys + key) * p.k_stride + p.k_offset + head * p.key_width;
  float sum = 0.0;
  for (uint d = 0; d < p.key_width; ++d) sum += load_float(q[q_at + d]) * load_float(k[k_at + d]);
  sum *= p.scale;
  if (bias_table) sum += bias[bias_row(query, key) * p.heads + head];
  if (bias_rows) sum += bias_of_key(bias, at / p.keys, key);
  scores[at] = sum;
}
