//! variant f32 T=float
// result = start . A, where A is (maps + I) / 2 with its rows brought to a sum of 1, and start is the previous
// result or, without one, rows of the identity or their mean. One invocation computes a column of `block`
// rows: an element of A is made once for all of them.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "attention_rollout.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool has_start = false;
layout(constant_id = 2) const uint block = 4;

layout(push_constant) uniform Push { AttentionRolloutParams p; };
layout(set = 0, binding = 0) readonly buffer Maps { T maps[]; };
layout(set = 0, binding = 1) readonly buffer Factors { T factors[]; };
layout(set = 0, binding = 2) readonly buffer Start { T start[]; };
layout(set = 0, binding = 3) writeonly buffer Result { T result[]; };

float element(uint image, uint i, uint column) {
  const float itself = i == column ? 0.5 : 0.0;
  return factors[image * p.tokens + i] * (0.5 * maps[(image * p.tokens + i) * p.tokens + column] + itself);
}

void main() {
  // Rows by workgroup: all invocations of one read the same elements of `start`.
  const uint column = gl_GlobalInvocationID.x, first = gl_WorkGroupID.y * block, image = gl_WorkGroupID.z;
  if (column >= p.tokens) return;

  float sums[block];
  for (uint r = 0; r < block; ++r) sums[r] = 0.0;
  if (has_start) {
    // The last block's missing rows compute its last one once more.
    uint rows[block];
    for (uint r = 0; r < block; ++r) rows[r] = (image * p.rows + min(first + r, p.rows - 1)) * p.tokens;
    for (uint i = 0; i < p.tokens; ++i) {
      const float a = element(image, i, column);
      for (uint r = 0; r < block; ++r) sums[r] += start[rows[r] + i] * a;
    }
  } else if (p.mean_of > 0) {
    for (uint i = p.first_row; i < p.first_row + p.mean_of; ++i) sums[0] += element(image, i, column);
    sums[0] /= float(p.mean_of);
  } else {
    for (uint r = 0; r < block; ++r) {
      if (first + r < p.rows) sums[r] = element(image, p.first_row + first + r, column);
    }
  }
  // Loops of constant lengths everywhere: the sums stay in registers.
  for (uint r = 0; r < block; ++r) {
    if (first + r < p.rows) result[(image * p.rows + first + r) * p.tokens + column] = sums[r];
  }
}
