//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
// One invocation makes one element of the result: neighbours read neighbouring elements of each token.
// Tokens are summed in chunks of 16, chunk by chunk, so that the rounding error of a long sequence grows
// with the number of chunks and not of tokens.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "pool.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint dims = 768;

layout(push_constant) uniform Push { PoolParams p; };
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { T y[]; };

const uint chunk_tokens = 16;

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint base = (i / dims * p.tokens + p.first) * dims + i % dims;
  float sum = 0.0;
  for (uint from = 0; from < p.pooled; from += chunk_tokens) {
    const uint to = min(from + chunk_tokens, p.pooled);
    float chunk = 0.0;
    for (uint token = from; token < to; ++token) chunk += load_float(x[base + token * dims]);
    sum += chunk;
  }
  y[i] = store_as(T, sum / float(p.pooled));
}
