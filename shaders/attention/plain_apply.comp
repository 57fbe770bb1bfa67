//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
// out[b][n][h][d] = sum over m of weights[b][h][n][m] * v[b][m][h][d], one invocation each.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "attention.h"

layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { AttentionParams p; };
layout(set = 0, binding = 0) readonly buffer Weights { float weights[]; };
layout(set = 0, binding = 1) readonly buffer V { T v[]; };
layout(set = 0, binding = 2) writeonly buffer Out { T result[]; };

void main() {
  const uint at = linear_invocation();
  if (at >= p.blocks) return;
  const uint column = at % p.value_width;
  const uint head = at / p.value_width % p.heads;
  const uint query = at / p.value_width / p.heads % p.queries;
  const uint batch = at / p.value_width / p.heads / p.queries;
  const uint w_at = ((batch * p.heads + head) * p.queries + query) * p.keys;
  const uint v_at = batch * p.keys * p.v_stride + p.v_offset + head * p.value_width + column;
  float sum = 0.0;
  for (uint m = 0; m < p.keys; ++m) sum += weights[w_at + m] * load_float(v[v_at + m * p.v_stride]);
  result[at] = store_as(T, sum);
}
