//! variant f32
// dw[n][k] = sum over all patches of dy[patch][n] image[patch][k], of patches where they lie in their images, for so few n
// that the products of unfolded patches would be mostly unfolding:
//   workgroup   a tile of 4 x 4 sums
//   invocation  every local_size-th patch, 16 sums in registers; then each sum is added up over the workgroup
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/index.glsl"
#include "patch_weight_gradient.h"
#define PATCHES_FIRST_ID 3
#define PATCHES_PLACES_ALONE
#include "lib/patches.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 64;
layout(constant_id = 1) const uint n = 8;
layout(constant_id = 2) const uint k = 768;

const uint side = 4;
const uint chunk = 8;  // patches that are summed before they are added to the others
const uint tiles_k = (k + side - 1) / side;

layout(push_constant) uniform Push { PatchWeightGradientParams p; };
layout(set = 0, binding = 0) readonly buffer DY { float dy[]; };
layout(set = 0, binding = 1) readonly buffer Images { float images[]; };
layout(set = 0, binding = 2) writeonly buffer DW { float dw[]; };

shared float parts[side * side * local_size];

void main() {
  const uint number = linear_group();
  if (number >= p.tiles) return;
  const uint first_k = number % tiles_k * side, first_n = number / tiles_k * side;
  const uint lane = gl_LocalInvocationID.x;
  uint offset[side];
  [[unroll]] for (uint i = 0; i < side; ++i) offset[i] = patch_offset(min(first_k + i, k - 1));

  vec4 sums[side] = vec4[side](vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0));
  for (uint first = lane; first < p.rows; first += chunk * local_size) {
    vec4 part[side] = vec4[side](vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0));
    for (uint i = 0; i < chunk; ++i) {
      const uint row = first + i * local_size;
      if (row >= p.rows) break;
      const uint start = patch_start(row);
      vec4 x;
      [[unroll]] for (uint j = 0; j < side; ++j) x[j] = images[start + offset[j]];
      [[unroll]] for (uint j = 0; j < side; ++j) {
        if (first_n + j < n) part[j] += dy[row * n + first_n + j] * x;
      }
    }
    [[unroll]] for (uint j = 0; j < side; ++j) sums[j] += part[j];
  }

  [[unroll]] for (uint i = 0; i < side; ++i) {
    [[unroll]] for (uint j = 0; j < side; ++j) parts[(i * side + j) * local_size + lane] = sums[i][j];
  }
  barrier();
  for (uint value = lane; value < side * side; value += local_size) {
    float sum = 0.0;
    for (uint i = 0; i < local_size; ++i) sum += parts[value * local_size + i];
    const uint row = first_n + value / side, column = first_k + value % side;
    if (row < n && column < k) dw[row * k + column] = sum;
  }
}
