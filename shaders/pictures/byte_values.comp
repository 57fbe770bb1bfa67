//! variant f32
// One invocation a number: its byte, four of which lie in a word, becomes what the channel's row of the table
// has for it. No arithmetic, so the numbers are the table's, bit for bit, on every device.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "byte_values.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint channels = 3;
layout(constant_id = 2) const uint picture_pixels = 32 * 32;

layout(push_constant) uniform Push { ByteValuesParams p; };
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) readonly buffer Values { float values[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint value = x[i >> 2] >> 8 * (i & 3u) & 0xffu;
  y[i] = values[i / picture_pixels % channels * 256 + value];
}
