//! variant f32 TX=float TY=float
//! variant f32_f16 TX=float TY=float16_t needs=storage16
//! variant f16 TX=float16_t TY=float16_t needs=storage16
//! variant f16_f32 TX=float16_t TY=float needs=storage16
// One workgroup normalizes one group of an image's channels: their sum for the mean, the squared distances from it for
// the variance, then the result.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "lib/activation.glsl"
#include "group_norm.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 128;
layout(constant_id = 1) const uint channels = 64;
layout(constant_id = 2) const uint group_width = 2;
layout(constant_id = 3) const uint activation = VITRINE_ACTIVATION_NONE;
#include "lib/reduce.glsl"

layout(push_constant) uniform Push { GroupNormParams p; };
layout(set = 0, binding = 0) readonly buffer X { TX x[]; };
layout(set = 0, binding = 1) readonly buffer Gamma { float gamma[]; };
layout(set = 0, binding = 2) readonly buffer Beta { float beta[]; };
layout(set = 0, binding = 3) writeonly buffer Y { TY y[]; };

void main() {
  const uint number = linear_group();
  if (number >= p.count) return;
  const uint groups = channels / group_width, group = number % groups;
  const uint base = number / groups * p.pixels * channels + group * group_width;
  const uint elements = p.pixels * group_width;
  const uint lane = gl_LocalInvocationID.x;

  float sum = 0.0;
  for (uint i = lane; i < elements; i += local_size)
    sum += load_float(x[base + i / group_width * channels + i % group_width]);
  const float mean = sum_over_group(sum) / float(elements);

  float squares = 0.0;
  for (uint i = lane; i < elements; i += local_size) {
    const float distance = load_float(x[base + i / group_width * channels + i % group_width]) - mean;
    squares += distance * distance;
  }
  const float variance = sum_over_group(squares) / float(elements);
  const float inverse_deviation = nan_or(variance, inversesqrt(variance + p.eps));

  for (uint i = lane; i < elements; i += local_size) {
    const uint at = base + i / group_width * channels + i % group_width, channel = group * group_width + i % group_width;
    const float normalized = (load_float(x[at]) - mean) * inverse_deviation;
    y[at] = store_as(TY, activate(activation, normalized * gamma[channel] + beta[channel]));
  }
}
