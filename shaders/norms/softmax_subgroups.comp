//! variant f32 T4=vec4 OUT=float OUT4=vec4 needs=subgroup_control,subgroup_arithmetic
//! variant f16 T4=f16vec4 OUT=float16_t OUT4=f16vec4 needs=subgroup_control,subgroup_arithmetic,storage16
// softmax.comp with rows in registers: each element is read once, and its exponential computed once.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/nonfinite.glsl"
#include "softmax.h"
const uint slots = 2;
#include "lib/kept_rows.glsl"

layout(push_constant) uniform Push { SoftmaxParams p; };
layout(set = 0, binding = 0) readonly buffer X { T4 x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { OUT4 y[]; };
DEFINE_LOAD(load_x, x)

void main() {
  const uint row = kept_row();
  if (row >= p.rows) return;
  vec4 kept[fours];
  EACH_FOUR(q) kept[q] = load_x(row, q);

  // What lanes past the row's end hold is the row's, too.
  float highest = highest_of(kept[0]);
  EACH_FOUR(q) highest = max(highest, highest_of(kept[q]));
  highest = max_over_row(highest, 0);

  float sum = 0.0, distances = 0.0;
  EACH_FOUR(q) {
    const vec4 distance = only_of_row(q, kept[q] - highest, 0.0);
    kept[q] = exp(distance);
    distances += sum_of(distance);
    sum += sum_of(only_of_row(q, kept[q], 0.0));
  }
  const float factor = 1.0 / sum_over_row(nan_or(distances, sum), 1);

  STORE_ROW(y, row, q, kept[q] * factor);
}
