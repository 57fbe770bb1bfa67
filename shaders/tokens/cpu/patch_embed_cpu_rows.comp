//! variant f32
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "patch_embed_cpu_rows.h"

// The patches of the images as rows of a matrix product, in the blocks that matmul_cpu_direct.comp reads:
// [rows / block_rows][steps of K][block_rows][unroll], zeros around. Element k of a row is pixel (c, y, x)
// of its patch, x fastest.
//
//   invocation  one step of one row
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint block_rows = 8;
layout(constant_id = 2) const uint unroll = 8;
layout(constant_id = 3) const uint patch_height = 16;
layout(constant_id = 4) const uint patch_width = 16;

layout(push_constant) uniform Push { PatchEmbedRowsParams p; };
layout(set = 0, binding = 0) readonly buffer Images { float images[]; };
layout(set = 0, binding = 1) writeonly buffer Blocks { float blocks[]; };

void main() {
  const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  for (uint at = gl_GlobalInvocationID.x; at < p.count; at += stride) {
    const uint row = at / p.steps, step = at % p.steps;
    const uint patch_number = row % (p.patch_rows * p.patch_columns);
    const uint image = row / (p.patch_rows * p.patch_columns);
    const uint corner = (image * p.channels * p.height + patch_number / p.patch_columns * patch_height) * p.width +
                        patch_number % p.patch_columns * patch_width;
    const uint to = ((row / block_rows * p.steps + step) * block_rows + row % block_rows) * unroll;
    [[dont_unroll]] for (uint u = 0; u < unroll; ++u) {  // a store is much code on drivers for CPUs
      const uint k = step * unroll + u;
      const uint line = k / patch_width;  // of the patch, counted through all channels
      const uint from =
          corner + (line / patch_height * p.height + line % patch_height) * p.width + k % patch_width;
      blocks[to + u] = row < p.rows && line < p.channels * patch_height ? images[from] : 0.0;
    }
  }
}
