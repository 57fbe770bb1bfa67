//! variant f32 T=float
// result = start . A, where A is (maps + I) / 2 with its rows divided by their sums, and start is the
// previous result or, without one, rows of the identity or their mean. One invocation an element.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "attention_rollout.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool has_start = false;

layout(push_constant) uniform Push { AttentionRolloutParams p; };
layout(set = 0, binding = 0) readonly buffer Maps { T maps[]; };
layout(set = 0, binding = 1) readonly buffer Sums { T sums[]; };
layout(set = 0, binding = 2) readonly buffer Start { T start[]; };
layout(set = 0, binding = 3) writeonly buffer Result { T result[]; };

void main() {
  const uint at = linear_invocation();
  if (at >= p.count) return;
  const uint column = at % p.tokens;
  const uint row = at / p.tokens % p.rows;
  const uint image = at / p.tokens / p.rows;
  const uint from = has_start ? 0 : p.first_row + row;
  const uint to = has_start ? p.tokens : from + max(p.mean_of, 1);

  float sum = 0.0;
  for (uint i = from; i < to; ++i) {
    float share = 1.0 / float(to - from);
    if (has_start) share = start[(image * p.rows + row) * p.tokens + i];
    const float itself = i == column ? 0.5 : 0.0;
    sum += share / sums[image * p.tokens + i] * (0.5 * maps[(image * p.tokens + i) * p.tokens + column] + itself);
  }
  result[at] = sum;
}
