//! variant f32 TX4=vec4 TY4=vec4
//! variant f32_f16 TX4=vec4 TY4=f16vec4 needs=storage16
//! variant f16 TX4=f16vec4 TY4=f16vec4 needs=storage16
//! variant f16_f32 TX4=f16vec4 TY4=vec4 needs=storage16
// neighbourhoods.comp with four channels of a pixel an invocation.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "neighbourhoods.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint channels = 64;
layout(constant_id = 2) const uint kernel_height = 3;
layout(constant_id = 3) const uint kernel_width = 3;
layout(constant_id = 4) const uint stride_y = 1;
layout(constant_id = 5) const uint stride_x = 1;
layout(constant_id = 6) const uint rows = 56;  // of neighbourhoods, down a map
layout(constant_id = 7) const uint columns = 56;

layout(push_constant) uniform Push { NeighbourhoodsParams p; };
layout(set = 0, binding = 0) readonly buffer X { TX4 x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { TY4 y[]; };

const uint quads = channels / 4, depth = quads * kernel_height * kernel_width;

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint k = i % depth, quad = k % quads, tap = k / quads;
  const uint place = i / depth % (rows * columns), image = i / depth / (rows * columns);
  const uint down = place / columns * stride_y + tap / kernel_width - p.top;
  const uint across = place % columns * stride_x + tap % kernel_width - p.left;
  vec4 value = vec4(0.0);
  if (down < p.height && across < p.width)
    value = vec4(x[((image * p.height + down) * p.width + across) * quads + quad]);
  y[i] = TY4(value);
}
