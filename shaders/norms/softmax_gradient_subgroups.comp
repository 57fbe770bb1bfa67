//! variant f32 T4=vec4 OUT=float OUT4=vec4 needs=subgroup_control,subgroup_arithmetic
//! variant f16 T4=f16vec4 OUT=float16_t OUT4=f16vec4 needs=subgroup_control,subgroup_arithmetic,storage16
// softmax_gradient.comp with rows in registers.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "softmax.h"
const uint slots = 1;
#include "lib/kept_rows.glsl"

layout(push_constant) uniform Push { SoftmaxParams p; };
layout(set = 0, binding = 0) readonly buffer Dy { T4 dy[]; };
layout(set = 0, binding = 1) readonly buffer Y { T4 y[]; };
layout(set = 0, binding = 2) writeonly buffer Dx { OUT4 dx[]; };
DEFINE_LOAD(load_dy, dy)
DEFINE_LOAD(load_y, y)

void main() {
  const uint row = kept_row();
  if (row >= p.rows) return;
  vec4 gradients[fours], weights[fours];
  EACH_FOUR(q) gradients[q] = load_dy(row, q);
  EACH_FOUR(q) weights[q] = load_y(row, q);

  float sum = 0.0;
  EACH_FOUR(q) sum += sum_of(only_of_row(q, gradients[q] * weights[q], 0.0));
  sum = sum_over_row(sum, 0);

  STORE_ROW(dx, row, q, weights[q] * (gradients[q] - sum));
}
