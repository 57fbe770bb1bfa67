//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
// One invocation a number: a query of one head times the relative position of a row or column of keys.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "grid_bias.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint heads = 12;
layout(constant_id = 2) const uint key_width = 64;
layout(constant_id = 3) const uint height = 14;
layout(constant_id = 4) const uint width = 14;

layout(push_constant) uniform Push { GridBiasParams p; };
layout(set = 0, binding = 0) readonly buffer Q { T q[]; };
layout(set = 0, binding = 1) readonly buffer Rows { float rows[]; };
layout(set = 0, binding = 2) readonly buffer Columns { float columns[]; };
layout(set = 0, binding = 3) writeonly buffer Y { float y[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint numbers = height + width, tokens = height * width;
  const uint k = i % numbers, row = i / numbers;
  const uint token = row % tokens, head = row / tokens % heads, image = row / (tokens * heads);
  const uint from = (image * tokens + token) * p.stride + p.offset + head * key_width;
  float sum = 0;
  if (k < height) {
    const uint at = (token / width + height - 1 - k) * key_width;
    for (uint j = 0; j < key_width; ++j) sum += load_float(q[from + j]) * rows[at + j];
  } else {
    const uint at = (token % width + width - 1 - (k - height)) * key_width;
    for (uint j = 0; j < key_width; ++j) sum += load_float(q[from + j]) * columns[at + j];
  }
  y[i] = sum;
}
