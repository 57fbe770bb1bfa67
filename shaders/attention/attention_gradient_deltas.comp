//! variant f32
// What the gradients of a row of attention's weights have in common: the result's gradient times the result,
// summed over a head's columns. Lies beside the logarithm of their sum: one buffer less for what reads both, and the
// least devices bind few. One invocation a head of a query.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "attention_gradient.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint value_width = 64;

layout(push_constant) uniform Push { AttentionDeltasParams p; };
layout(set = 0, binding = 0) readonly buffer Out { float result[]; };
layout(set = 0, binding = 1) readonly buffer Given { float given[]; };
layout(set = 0, binding = 2) readonly buffer Lse { float lse[]; };
layout(set = 0, binding = 3) writeonly buffer Statistics { vec2 statistics[]; };  // lse, delta

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  // Neighbours take neighbouring heads, whose columns are neighbours.
  const uint head = i % p.heads;
  const uint row = i / p.heads;
  float sum = 0.0;
  for (uint d = 0; d < value_width; ++d) sum += given[i * value_width + d] * result[i * value_width + d];
  const uint at = (row / p.queries * p.heads + head) * p.queries + row % p.queries;
  statistics[at] = vec2(lse[at], sum);
}
