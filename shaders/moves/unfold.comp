//! variant f32
// The pixels of each patch as a row: element k is pixel (c, y, x) of the patch, x fastest. One invocation an
// element.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "unfold.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint patch_height = 16;
layout(constant_id = 2) const uint patch_width = 16;
layout(constant_id = 3) const uint patch_rows = 14;  // down an image
layout(constant_id = 4) const uint patch_columns = 14;
layout(constant_id = 5) const uint depth = 768;  // elements of a row

layout(push_constant) uniform Push { UnfoldParams p; };
layout(set = 0, binding = 0) readonly buffer Images { float images[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint row = i / depth, k = i % depth;
  const uint line = k / patch_width;  // of the patch, counted through all channels
  const uint patch_number = row % (patch_rows * patch_columns), image = row / (patch_rows * patch_columns);
  const uint plane = image * p.channels + line / patch_height;
  const uint down = patch_number / patch_columns * patch_height + line % patch_height;
  y[i] = images[(plane * p.height + down) * p.width + patch_number % patch_columns * patch_width + k % patch_width];
}
