//! variant f32 TX=float TY=float
//! variant f32_f16 TX=float TY=float16_t needs=storage16
//! variant f16 TX=float16_t TY=float16_t needs=storage16
//! variant f16_f32 TX=float16_t TY=float needs=storage16
// One workgroup normalizes one row: it sums the row for the mean, then the squared distances from the
// mean for the variance (E[x^2] - mean^2 would cancel), then writes. Its invocations step through the
// row side by side.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "layer_norm.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 128;
layout(constant_id = 1) const bool rms = false;  // no mean is taken off, and nothing added
#include "lib/reduce.glsl"

layout(push_constant) uniform Push { LayerNormParams p; };
layout(set = 0, binding = 0) readonly buffer X { TX x[]; };
layout(set = 0, binding = 1) readonly buffer Gamma { float gamma[]; };
layout(set = 0, binding = 2) readonly buffer Beta { float beta[]; };
layout(set = 0, binding = 3) writeonly buffer Y { TY y[]; };

void main() {
  const uint row = linear_group();
  if (row >= p.rows) return;
  const uint base = row * p.width;
  const uint lane = gl_LocalInvocationID.x;

  float mean = 0.0;
  if (!rms) {
    float sum = 0.0;
    for (uint i = lane; i < p.width; i += local_size) sum += load_float(x[base + i]);
    mean = sum_over_group(sum) / float(p.width);
  }

  float squares = 0.0;
  for (uint i = lane; i < p.width; i += local_size) {
    const float distance = load_float(x[base + i]) - mean;
    squares += distance * distance;
  }
  const float variance = sum_over_group(squares) / float(p.width);
  const float inverse_deviation = nan_or(variance, inversesqrt(variance + p.eps));

  for (uint i = lane; i < p.width; i += local_size) {
    const float normalized = (load_float(x[base + i]) - mean) * inverse_deviation;
    y[base + i] = store_as(TY, rms ? normalized * gamma[i] : normalized * gamma[i] + beta[i]);
  }
}
