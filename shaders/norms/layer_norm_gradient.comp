//! variant f32 TX=float TY=float
//! variant f32_f16 TX=float TY=float16_t needs=storage16
//! variant f16 TX=float16_t TY=float16_t needs=storage16
//! variant f16_f32 TX=float16_t TY=float needs=storage16
// The gradient of LayerNorm's input: with n the normalized row and g = dy gamma,
//   dx = (g - mean(g) - n mean(g n)) / deviation  [+ residual].
// One workgroup takes one row and computes its mean and deviation as layer_norm.comp does. It leaves them for
// layer_norm_gradient_sums.comp where the parameters' gradients are asked for.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "layer_norm.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 128;
layout(constant_id = 1) const bool keep_statistics = false;
layout(constant_id = 2) const bool has_residual = false;
layout(constant_id = 3) const bool rms = false;  // as in layer_norm.comp: without mean(x) and mean(g)
#include "lib/reduce.glsl"

layout(push_constant) uniform Push { LayerNormParams p; };
layout(set = 0, binding = 0) readonly buffer Dy { TY dy[]; };
layout(set = 0, binding = 1) readonly buffer X { TX x[]; };
layout(set = 0, binding = 2) readonly buffer Gamma { float gamma[]; };
layout(set = 0, binding = 3) readonly buffer Residual { TX residual[]; };
layout(set = 0, binding = 4) writeonly buffer Dx { TX dx[]; };
layout(set = 0, binding = 5) writeonly buffer Statistics { vec2 statistics[]; };  // mean, 1 / deviation

void main() {
  const uint row = linear_group();
  if (row >= p.rows) return;
  const uint base = row * p.width;
  const uint lane = gl_LocalInvocationID.x;
  const float count = float(p.width);

  float mean = 0.0;
  if (!rms) {
    float sum = 0.0;
    for (uint i = lane; i < p.width; i += local_size) sum += load_float(x[base + i]);
    mean = sum_over_group(sum) / count;
  }

  float squares = 0.0;
  for (uint i = lane; i < p.width; i += local_size) {
    const float distance = load_float(x[base + i]) - mean;
    squares += distance * distance;
  }
  const float variance = sum_over_group(squares) / count;
  const float inverse_deviation = nan_or(variance, inversesqrt(variance + p.eps));

  float gradients = 0.0, products = 0.0;
  for (uint i = lane; i < p.width; i += local_size) {
    const float g = load_float(dy[base + i]) * gamma[i];
    gradients += g;
    products += g * ((load_float(x[base + i]) - mean) * inverse_deviation);
  }
  gradients = rms ? 0.0 : sum_over_group(gradients) / count;
  products = sum_over_group(products) / count;

  // Each invocation writes the elements that it alone has read last: dx may be the memory of dy or residual.
  for (uint i = lane; i < p.width; i += local_size) {
    const float normalized = (load_float(x[base + i]) - mean) * inverse_deviation;
    const float g = load_float(dy[base + i]) * gamma[i];
    const float before = has_residual ? load_float(residual[base + i]) : 0.0;
    dx[base + i] = store_as(TX, before + inverse_deviation * (g - gradients - normalized * products));
  }
  if (keep_statistics && lane == 0) statistics[row] = vec2(mean, inverse_deviation);
}
