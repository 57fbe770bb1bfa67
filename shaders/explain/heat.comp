//! variant f32
// One row of each of several stored maps [maps, rows, tokens], and their mean where it is asked for, as
// pixels; workgroups: parts of a picture (x), maps (y).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "heat.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 64;
layout(constant_id = 1) const uint cells = 196;
layout(constant_id = 2) const uint grid_width = 14;

layout(push_constant) uniform Push { HeatParams p; };
layout(set = 0, binding = 0) readonly buffer Stored { float stored[]; };
layout(set = 0, binding = 1) readonly buffer Choice { uint choice[]; };
layout(set = 0, binding = 2) readonly buffer Colors { uint colors[]; };
layout(set = 0, binding = 3) writeonly buffer Pixels { uint pixels[]; };
layout(set = 0, binding = 4) writeonly buffer Numbers { float numbers[]; };
#include "lib/heat.glsl"

float number_of(uint map, uint cell) {
  const uint row = min(choice[0], p.rows - 1);
  const uint first = map < p.maps ? map : 0, end = map < p.maps ? map + 1 : p.maps;
  float sum = 0.0;
  for (uint m = first; m < end; ++m) sum += stored[(m * p.rows + row) * p.tokens + p.first_token + cell];
  return sum / float(end - first);
}

void main() { paint(gl_WorkGroupID.y, gl_WorkGroupID.x, gl_NumWorkGroups.x); }
