//! variant f32
// The second of group_norm's three dispatches: the slabs' means and squares make those of the whole. One invocation a
// group of an image. Slabs are summed in chunks of 16, so that the rounding error grows with the number of these.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "group_norm.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint groups = 32;
layout(constant_id = 2) const uint group_width = 2;
layout(constant_id = 3) const uint slab_pixels = 64;

layout(push_constant) uniform Push { GroupNormParams p; };
layout(set = 0, binding = 0) readonly buffer Statistics { vec2 statistics[]; };
layout(set = 0, binding = 1) writeonly buffer Moments { vec2 moments[]; };  // the mean, 1 / the deviation

const uint chunk_slabs = 16;

float elements_of(uint slab) { return float((min((slab + 1) * slab_pixels, p.pixels) - slab * slab_pixels) * group_width); }

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint base = i / groups * p.slabs * groups + i % groups;
  const float elements = float(p.pixels) * float(group_width);
  float sum = 0.0;
  for (uint from = 0; from < p.slabs; from += chunk_slabs) {
    float chunk = 0.0;
    for (uint slab = from; slab < min(from + chunk_slabs, p.slabs); ++slab)
      chunk += statistics[base + slab * groups].x * elements_of(slab);
    sum += chunk;
  }
  const float mean = sum / elements;
  float squares = 0.0;
  for (uint from = 0; from < p.slabs; from += chunk_slabs) {
    float chunk = 0.0;
    for (uint slab = from; slab < min(from + chunk_slabs, p.slabs); ++slab) {
      const vec2 found = statistics[base + slab * groups];
      chunk += found.y + elements_of(slab) * (found.x - mean) * (found.x - mean);
    }
    squares += chunk;
  }
  const float variance = squares / elements;
  moments[i] = vec2(mean, nan_or(variance, inversesqrt(variance + p.eps)));
}
