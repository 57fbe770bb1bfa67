//! variant f32 T=float V=float EACH=1
//! variant f16 T=float16_t V=float EACH=1 needs=storage16
//! variant f32_quads T=vec4 V=vec4 EACH=4
//! variant f16_quads T=f16vec4 V=vec4 EACH=4 needs=storage16
// The largest value, or the mean, of each window of a map, channel by channel. One invocation an element of the result,
// or four channels of one; what lies beyond the map's edges doesn't count.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "pool_windows.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint channels = 64;
layout(constant_id = 2) const uint kernel_height = 3;
layout(constant_id = 3) const uint kernel_width = 3;
layout(constant_id = 4) const uint rows = 56;  // of windows, down a map
layout(constant_id = 5) const uint columns = 56;
layout(constant_id = 6) const bool mean = false;

layout(push_constant) uniform Push { PoolWindowsParams p; };
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { T y[]; };

const uint pieces = channels / EACH;  // of a pixel

// A NaN stays, whatever comes behind it.
float larger(float a, float b) { return nan_or(a, nan_or(b, max(a, b))); }
vec4 larger(vec4 a, vec4 b) {
  return vec4(larger(a.x, b.x), larger(a.y, b.y), larger(a.z, b.z), larger(a.w, b.w));
}

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint place = i / pieces % (rows * columns), image = i / pieces / (rows * columns);
  // Below 0 wraps around to far beyond the edge.
  const uint first_down = place / columns * p.stride_y - p.top;
  const uint first_across = place % columns * p.stride_x - p.left;
  V result = V(0.0);
  uint seen = 0;
  for (uint tap_y = 0; tap_y < kernel_height; ++tap_y) {
    const uint down = first_down + tap_y;
    if (down >= p.height) continue;
    for (uint tap_x = 0; tap_x < kernel_width; ++tap_x) {
      const uint across = first_across + tap_x;
      if (across >= p.width) continue;
      const V value = V(x[((image * p.height + down) * p.width + across) * pieces + i % pieces]);
      result = mean ? result + value : seen == 0 ? value : larger(result, value);
      ++seen;
    }
  }
  y[i] = T(mean ? result / float(seen) : result);
}
