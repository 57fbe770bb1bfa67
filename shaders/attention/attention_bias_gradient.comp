//! variant f32
// The gradient of a table of relative positions (lib/relative_bias.glsl): of each of its numbers the sum of the
// gradients weight * (dout . v - delta) of all scores that it was added to, the weights computed again. One workgroup
// a number: its invocations share out the images and the pairs of tokens, whose queries are a part of the grid as large
// as the grid is behind the distance.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "lib/philox.glsl"
#include "attention_bias_gradient.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 64;
layout(constant_id = 1) const uint key_width = 64;
layout(constant_id = 2) const uint value_width = 64;
layout(constant_id = 3) const bool drop = false;
layout(constant_id = 4) const uint bias_height = 1;
layout(constant_id = 5) const uint bias_width = 1;
layout(constant_id = 6) const uint bias_first = 0;
#include "lib/reduce.glsl"
#include "lib/relative_bias.glsl"

layout(push_constant) uniform Push { AttentionBiasGradientParams p; };
layout(set = 0, binding = 0) readonly buffer Q { float q[]; };
layout(set = 0, binding = 1) readonly buffer K { float k[]; };
layout(set = 0, binding = 2) readonly buffer V { float v[]; };
layout(set = 0, binding = 3) readonly buffer Given { float given[]; };
layout(set = 0, binding = 4) readonly buffer Statistics { vec2 statistics[]; };  // of a query: lse, delta
layout(set = 0, binding = 5) readonly buffer Step { uint words[]; };
layout(set = 0, binding = 6) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 7) writeonly buffer Result { float result[]; };

// The gradient of a score.
float of_pair(uint batch, uint head, uint query, uint key, float added) {
  const uint q_at = (batch * p.tokens + query) * p.q_stride + p.q_offset + head * key_width;
  const uint k_at = (batch * p.tokens + key) * p.k_stride + p.k_offset + head * key_width;
  const uint v_at = (batch * p.tokens + key) * p.v_stride + p.v_offset + head * value_width;
  const uint given_at = ((batch * p.tokens + query) * p.heads + head) * value_width;
  const uint statistic = (batch * p.heads + head) * p.tokens + query;
  float score = 0.0, gradient = 0.0;
  for (uint d = 0; d < key_width; ++d) score += q[q_at + d] * k[k_at + d];
  for (uint d = 0; d < value_width; ++d) gradient += given[given_at + d] * v[v_at + d];
  if (drop) {
    const bool kept = kept_four(mask_source(words, p.drop_stream, p.drop_threshold), key / 4, statistic)[key % 4];
    gradient = kept ? gradient * p.drop_factor : 0.0;
  }
  const vec2 lse_and_delta = statistics[statistic];
  return exp_or_nan(score * p.scale + added - lse_and_delta.x) * (gradient - lse_and_delta.y);
}

void main() {
  const uint work = linear_group();
  if (work >= p.count) return;
  const uint row = work / p.heads;
  const uint head = work % p.heads;

  // The first pair, and how many there are: of queries in a part of the grid, each with the key at the row's distance.
  const int down = int(row / (2 * bias_width - 1)) - int(bias_height - 1);
  const int right = int(row % (2 * bias_width - 1)) - int(bias_width - 1);
  uint part_height = bias_height - uint(abs(down));
  uint part_width = bias_width - uint(abs(right));
  uint query = bias_first + uint(max(down, 0)) * bias_width + uint(max(right, 0));
  uint key = query - uint(down * int(bias_width) + right);
  bool queries_move = true, keys_move = true;
  if (bias_first != 0 && row > 2 * bias_centre) {
    queries_move = row == table_rows - 2;
    keys_move = row == table_rows - 3;
    part_height = row == table_rows - 1 ? 1 : bias_height;
    part_width = row == table_rows - 1 ? 1 : bias_width;
    query = queries_move ? bias_first : 0;
    key = keys_move ? bias_first : 0;
  }

  const float added = bias[work];
  const uint pairs = part_height * part_width;
  float sum = 0.0;
  for (uint e = gl_LocalInvocationID.x; e < p.batch * pairs; e += local_size) {
    const uint i = e % pairs;
    const uint moved = i / part_width * bias_width + i % part_width;
    sum += of_pair(e / pairs, head, query + (queries_move ? moved : 0), key + (keys_move ? moved : 0), added);
  }
  sum = sum_over_group(sum);
  if (gl_LocalInvocationID.x == 0) result[work] = sum;
}
