//! variant f32
// Rows of patches back as images, zero where no patch is: unfold.comp the other way round. One invocation a
// pixel.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "unfold.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint patch_height = 16;
layout(constant_id = 2) const uint patch_width = 16;
layout(constant_id = 3) const uint patch_rows = 14;
layout(constant_id = 4) const uint patch_columns = 14;
layout(constant_id = 5) const uint depth = 768;

layout(push_constant) uniform Push { UnfoldParams p; };
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Images { float images[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint across = i % p.width, down = i / p.width % p.height;
  const uint channel = i / (p.width * p.height) % p.channels, image = i / (p.width * p.height * p.channels);
  const uint patch_row = down / patch_height, patch_column = across / patch_width;
  float value = 0.0;
  if (patch_row < patch_rows && patch_column < patch_columns) {
    const uint row = (image * patch_rows + patch_row) * patch_columns + patch_column;
    const uint line = channel * patch_height + down % patch_height;
    value = x[row * depth + line * patch_width + across % patch_width];
  }
  images[i] = value;
}
