//! variant f32 TX=float TY=float
//! variant f32_f16 TX=float TY=float16_t needs=storage16
//! variant f16 TX=float16_t TY=float16_t needs=storage16
//! variant f16_f32 TX=float16_t TY=float needs=storage16
// The pixels around each place of a map as a row: element k is channel c of pixel (y, x) of the kernel, c fastest.
// One invocation an element; beyond the map's edges it is 0.
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
layout(constant_id = 8) const bool planar = false;  // channel by channel, not pixel by pixel

layout(push_constant) uniform Push { NeighbourhoodsParams p; };
layout(set = 0, binding = 0) readonly buffer X { TX x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { TY y[]; };

const uint depth = channels * kernel_height * kernel_width;

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint k = i % depth, channel = k % channels, tap = k / channels;
  const uint place = i / depth % (rows * columns), image = i / depth / (rows * columns);
  // Below 0 wraps around to far beyond the edge.
  const uint down = place / columns * stride_y + tap / kernel_width - p.top;
  const uint across = place % columns * stride_x + tap % kernel_width - p.left;
  float value = 0.0;
  if (down < p.height && across < p.width) {
    const uint pixel = planar ? ((image * channels + channel) * p.height + down) * p.width + across
                              : ((image * p.height + down) * p.width + across) * channels + channel;
    value = load_float(x[pixel]);
  }
  y[i] = store_as(TY, value);
}
