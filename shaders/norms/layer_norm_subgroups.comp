//! variant f32 IN4=vec4 OUT=float OUT4=vec4 needs=subgroup_control,subgroup_arithmetic
//! variant f32_f16 IN4=vec4 OUT=float16_t OUT4=f16vec4 needs=subgroup_control,subgroup_arithmetic,storage16
//! variant f16 IN4=f16vec4 OUT=float16_t OUT4=f16vec4 needs=subgroup_control,subgroup_arithmetic,storage16
//! variant f16_f32 IN4=f16vec4 OUT=float OUT4=vec4 needs=subgroup_control,subgroup_arithmetic,storage16
// layer_norm.comp with rows in registers: they are read once, the variance is taken from the distances to the mean
// that lie there, and what is multiplied and added is under way while the row is summed.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/nonfinite.glsl"
#include "layer_norm.h"
const uint slots = 2;
#include "lib/kept_rows.glsl"
layout(constant_id = 7) const bool rms = false;  // no mean is taken off, and nothing added

layout(push_constant) uniform Push { LayerNormParams p; };
layout(set = 0, binding = 0) readonly buffer X { IN4 x[]; };
layout(set = 0, binding = 1) readonly buffer Gamma { vec4 gamma[]; };
layout(set = 0, binding = 2) readonly buffer Beta { vec4 beta[]; };
layout(set = 0, binding = 3) writeonly buffer Y { OUT4 y[]; };
DEFINE_LOAD(load_x, x)
DEFINE_LOAD(load_gamma, gamma)
DEFINE_LOAD(load_beta, beta)

void main() {
  const uint row = kept_row();
  if (row >= p.rows) return;
  vec4 kept[fours], scale[fours], shift[fours];
  EACH_FOUR(q) kept[q] = load_x(row, q);
  EACH_FOUR(q) scale[q] = load_gamma(0, q);
  EACH_FOUR(q) shift[q] = rms ? vec4(0.0) : load_beta(0, q);

  float mean = 0.0;
  if (!rms) {
    float sum = 0.0;
    EACH_FOUR(q) sum += sum_of(only_of_row(q, kept[q], 0.0));
    mean = sum_over_row(sum, 0) / float(width);
  }

  float squares = 0.0;
  EACH_FOUR(q) {
    kept[q] = only_of_row(q, kept[q] - mean, 0.0);
    squares += sum_of(kept[q] * kept[q]);
  }
  const float variance = sum_over_row(squares, 1) / float(width);
  const float inverse_deviation = nan_or(variance, inversesqrt(variance + p.eps));

  STORE_ROW(y, row, q, kept[q] * inverse_deviation * scale[q] + shift[q]);
}
