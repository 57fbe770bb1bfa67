//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
// weight[b][h][n][m] = exp(scale * q . k + bias - lse[b][h][n]): attention's weights again, row by row, since
// the log-sum-exp is all that its softmax needs to know of the other keys. One invocation an element of
// the result; where heads or rows are averaged, it sums over them itself, first rows, then heads.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "attention_rows.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint key_width = 64;
layout(constant_id = 2) const bool mean_heads = false;
layout(constant_id = 3) const bool mean_rows = false;
layout(constant_id = 4) const bool bias_table = false;  // of scores: see lib/relative_bias.glsl
layout(constant_id = 5) const uint bias_height = 1;
layout(constant_id = 6) const uint bias_width = 1;
layout(constant_id = 7) const uint bias_first = 0;
layout(constant_id = 8) const bool bias_rows = false;
#include "lib/relative_bias.glsl"

layout(push_constant) uniform Push { AttentionRowsParams p; };
layout(set = 0, binding = 0) readonly buffer Q { T q[]; };
layout(set = 0, binding = 1) readonly buffer K { T k[]; };
layout(set = 0, binding = 2) readonly buffer Lse { float lse[]; };
layout(set = 0, binding = 3) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 4) writeonly buffer Result { float result[]; };

float weight(uint batch, uint head, uint row, uint key) {
  const uint query = p.first_row + row;
  const uint q_at = (batch * p.queries + query) * p.q_stride + p.q_offset + head * key_width;
  const uint k_at = (batch * p.keys + key) * p.k_stride + p.k_offset + head * key_width;
  float sum = 0.0;
  for (uint d = 0; d < key_width; ++d) sum += load_float(q[q_at + d]) * load_float(k[k_at + d]);
  sum *= p.scale;
  if (bias_table) sum += bias[bias_row(query, key) * p.heads + head];
  const uint line = (batch * p.heads + head) * p.queries + query;
  if (bias_rows) sum += bias_of_key(bias, line, key);
  return exp_or_nan(sum - lse[line]);
}

void main() {
  const uint at = linear_invocation();
  if (at >= p.count) return;
  const uint rows_out = mean_rows ? 1 : p.rows, heads_out = mean_heads ? 1 : p.heads;
  const uint key = at % p.keys;
  const uint row = at / p.keys % rows_out;
  const uint head = at / p.keys / rows_out % heads_out;
  const uint batch = at / p.keys / rows_out / heads_out;
  const uint last_head = mean_heads ? p.heads : head + 1;
  const uint last_row = mean_rows ? p.rows : row + 1;

  float sum = 0.0;
  for (uint h = head; h < last_head; ++h) {
    float of_head = 0.0;
    for (uint r = row; r < last_row; ++r) of_head += weight(batch, h, r, key);
    sum += of_head;
  }
  result[at] = sum / float((last_head - head) * (last_row - row));
}
