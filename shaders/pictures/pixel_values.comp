//! variant f32
// One invocation a pixel: each of its bytes becomes the number that the channel's row of the table has
// for it. No arithmetic, so the numbers are the table's, bit for bit, on every device.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "pixel_values.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint channels = 3;
layout(constant_id = 2) const uint picture_pixels = 224 * 224;

layout(push_constant) uniform Push { PixelValuesParams p; };
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) readonly buffer Values { float values[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint pixel = x[i];
  const uint to = i / picture_pixels * channels * picture_pixels + i % picture_pixels;
  for (uint c = 0; c < channels; ++c)
    y[to + c * picture_pixels] = values[c * 256 + (pixel >> 8 * c & 0xffu)];
}
