//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
// The first of group_norm's three dispatches where an image's pixels are cut into slabs: of each group in each slab the
// mean and the sum of the squared distances from it. One invocation a group of a slab, so that neighbours read pixels
// side by side and nothing waits for others.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "group_norm.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint channels = 64;
layout(constant_id = 2) const uint group_width = 2;
layout(constant_id = 3) const uint slab_pixels = 64;

layout(push_constant) uniform Push { GroupNormParams p; };
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) writeonly buffer Statistics { vec2 statistics[]; };

const uint groups = channels / group_width;

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint slab = i / groups % p.slabs, image = i / groups / p.slabs;
  const uint first = slab * slab_pixels, last = min(first + slab_pixels, p.pixels);
  const uint base = (image * p.pixels) * channels + i % groups * group_width;
  float sum = 0.0;
  for (uint pixel = first; pixel < last; ++pixel) {
    for (uint c = 0; c < group_width; ++c) sum += load_float(x[base + pixel * channels + c]);
  }
  const float mean = sum / float((last - first) * group_width);
  float squares = 0.0;
  for (uint pixel = first; pixel < last; ++pixel) {
    float of_pixel = 0.0;
    for (uint c = 0; c < group_width; ++c) {
      const float distance = load_float(x[base + pixel * channels + c]) - mean;
      of_pixel += distance * distance;
    }
    squares += of_pixel;
  }
  statistics[i] = vec2(mean, squares);
}
