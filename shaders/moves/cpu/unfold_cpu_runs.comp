//! variant f32 needs=addresses,int64 bind=addresses access=rw
// unfold.comp for devices that run a workgroup on a CPU core: one invocation moves a line of a patch, two
// pixels at a time.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/index.glsl"
#include "lib/quads.glsl"
#include "moves/unfold.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint patch_height = 16;
layout(constant_id = 2) const uint patch_width = 16;
layout(constant_id = 3) const uint patch_rows = 14;
layout(constant_id = 4) const uint patch_columns = 14;
layout(constant_id = 5) const uint lines = 48;  // of a patch in all channels

layout(push_constant) uniform Push {
  InWords images;
  OutWords y;
  UnfoldParams p;
};

const uint words = patch_width / 2;

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint row = i / lines, line = i % lines;
  const uint patch_number = row % (patch_rows * patch_columns), image = row / (patch_rows * patch_columns);
  const uint plane = image * p.channels + line / patch_height;
  const uint down = patch_number / patch_columns * patch_height + line % patch_height;
  const uint from = ((plane * p.height + down) * p.width + patch_number % patch_columns * patch_width) / 2;
  [[unroll]] for (uint word = 0; word < words; ++word) y.at[i * words + word] = images.at[from + word];
}
