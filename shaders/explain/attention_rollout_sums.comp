//! variant f32 T=float
// factors[b][i] = 1 / the sum of row i of (maps[b] + I) / 2: what brings that row's sum to 1.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "attention_rollout.h"

layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { AttentionRolloutParams p; };
layout(set = 0, binding = 0) readonly buffer Maps { T maps[]; };
layout(set = 0, binding = 1) writeonly buffer Factors { T factors[]; };

void main() {
  const uint row = linear_invocation();
  if (row >= p.count) return;
  float sum = 0.0;
  for (uint j = 0; j < p.tokens; ++j) sum += maps[row * p.tokens + j];
  factors[row] = 1.0 / (0.5 * sum + 0.5);
}
