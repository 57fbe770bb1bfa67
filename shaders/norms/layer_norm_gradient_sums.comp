//! variant f32 TX=float TY=float
//! variant f32_f16 TX=float TY=float16_t needs=storage16
//! variant f16 TX=float16_t TY=float16_t needs=storage16
//! variant f16_f32 TX=float16_t TY=float needs=storage16
// The gradients of LayerNorm's parameters: dgamma sums dy times the normalized rows, dbeta sums dy. It works like
// sum_rows.comp: an invocation adds every n-th row of a column, and a second dispatch, for which X and Dy are
// what the first one left, adds these sums.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "layer_norm_gradient.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint width = 768;
layout(constant_id = 2) const bool of_sums = false;

layout(push_constant) uniform Push { LayerNormGradientSumsParams p; };
layout(set = 0, binding = 0) readonly buffer Dy { TY dy[]; };
layout(set = 0, binding = 1) readonly buffer X { TX x[]; };
layout(set = 0, binding = 2) readonly buffer Statistics { vec2 statistics[]; };
layout(set = 0, binding = 3) writeonly buffer Dgamma { float dgamma[]; };
layout(set = 0, binding = 4) writeonly buffer Dbeta { float dbeta[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.stride) return;
  float gamma_sum = 0.0, beta_sum = 0.0;
  const uint row_step = p.stride / width;
  uint row = i / width;
  for (uint at = i; at < p.count; at += p.stride) {
    const float gradient = load_float(dy[at]), value = load_float(x[at]);
    if (of_sums) {
      gamma_sum += value;
    } else {
      const vec2 mean_and_inverse = statistics[row];
      gamma_sum += gradient * ((value - mean_and_inverse.x) * mean_and_inverse.y);
      row += row_step;
    }
    beta_sum += gradient;
  }
  dgamma[i] = gamma_sum;
  dbeta[i] = beta_sum;
}
