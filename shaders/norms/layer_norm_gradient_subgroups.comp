//! variant f32 X4=vec4 Y4=vec4 OUT=float OUT4=vec4 needs=subgroup_control,subgroup_arithmetic
//! variant f32_f16 X4=vec4 Y4=f16vec4 OUT=float OUT4=vec4 needs=subgroup_control,subgroup_arithmetic,storage16
//! variant f16 X4=f16vec4 Y4=f16vec4 OUT=float16_t OUT4=f16vec4 needs=subgroup_control,subgroup_arithmetic,storage16
//! variant f16_f32 X4=f16vec4 Y4=vec4 OUT=float16_t OUT4=f16vec4 needs=subgroup_control,subgroup_arithmetic,storage16
// layer_norm_gradient.comp with rows in registers.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/nonfinite.glsl"
#include "layer_norm.h"
const uint slots = 4;
#include "lib/kept_rows.glsl"
layout(constant_id = 7) const bool keep_statistics = false;
layout(constant_id = 8) const bool has_residual = false;
layout(constant_id = 9) const bool rms = false;

layout(push_constant) uniform Push { LayerNormParams p; };
layout(set = 0, binding = 0) readonly buffer Dy { Y4 dy[]; };
layout(set = 0, binding = 1) readonly buffer X { X4 x[]; };
layout(set = 0, binding = 2) readonly buffer Gamma { vec4 gamma[]; };
layout(set = 0, binding = 3) readonly buffer Residual { X4 residual[]; };
layout(set = 0, binding = 4) writeonly buffer Dx { OUT4 dx[]; };
layout(set = 0, binding = 5) writeonly buffer Statistics { vec2 statistics[]; };  // mean, 1 / deviation
DEFINE_LOAD(load_dy, dy)
DEFINE_LOAD(load_x, x)
DEFINE_LOAD(load_gamma, gamma)
DEFINE_LOAD(load_residual, residual)

void main() {
  const uint row = kept_row();
  if (row >= p.rows) return;
  const float count = float(width);
  vec4 kept[fours], gradients[fours], before[fours];
  EACH_FOUR(q) kept[q] = load_x(row, q);
  EACH_FOUR(q) gradients[q] = load_dy(row, q) * load_gamma(0, q);
  EACH_FOUR(q) before[q] = has_residual ? load_residual(row, q) : vec4(0.0);

  float mean = 0.0;
  if (!rms) {
    float sum = 0.0;
    EACH_FOUR(q) sum += sum_of(only_of_row(q, kept[q], 0.0));
    mean = sum_over_row(sum, 0) / count;
  }

  float squares = 0.0;
  EACH_FOUR(q) {
    kept[q] = only_of_row(q, kept[q] - mean, 0.0);
    squares += sum_of(kept[q] * kept[q]);
  }
  const float variance = sum_over_row(squares, 1) / count;
  const float inverse_deviation = nan_or(variance, inversesqrt(variance + p.eps));

  float gradient_sum = 0.0, product_sum = 0.0;
  EACH_FOUR(q) {
    kept[q] *= inverse_deviation;
    gradient_sum += sum_of(only_of_row(q, gradients[q], 0.0));
    product_sum += sum_of(only_of_row(q, gradients[q] * kept[q], 0.0));
  }
  const float gradient_mean = rms ? 0.0 : sum_over_row(gradient_sum, 2) / count;
  const float product_mean = sum_over_row(product_sum, 3) / count;

  STORE_ROW(dx, row, q,
            before[q] + inverse_deviation * (gradients[q] - gradient_mean - kept[q] * product_mean));
  if (keep_statistics && kept_lane() == 0) statistics[row] = vec2(mean, inverse_deviation);
}
