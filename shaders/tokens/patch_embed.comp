//! variant f32 TW=float TY=float
//! variant f32_f16 TW=float TY=float16_t needs=storage16
//! variant f16_f32 TW=float16_t TY=float needs=storage16
//! variant f16 TW=float16_t TY=float16_t needs=storage16
// A matrix product tokens x dims over depth whose left side is read from the images in place:
//   workgroup   4*threads_m tokens x 4*threads_n dims
//   step        16 of the depth, staged in shared memory (both sides, depth-major)
//   invocation  4 x 4 sums, at tokens tm + threads_m*i and dims tn + threads_n*j
// Element k of a token is pixel (c, y, x) of its patch, x fastest, as the weight has it.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "patch_embed.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 256;  // threads_m * threads_n, a multiple of depth_step
layout(constant_id = 1) const uint threads_m = 16;
layout(constant_id = 2) const uint threads_n = 16;
layout(constant_id = 3) const uint patch_height = 16;
layout(constant_id = 4) const uint patch_width = 16;
layout(constant_id = 5) const uint patch_columns = 14;
layout(constant_id = 6) const uint patches = 196;
layout(constant_id = 7) const bool has_bias = true;

layout(push_constant) uniform Push { PatchEmbedParams p; };
layout(set = 0, binding = 0) readonly buffer Image { float image[]; };
layout(set = 0, binding = 1) readonly buffer Weight { TW weight[]; };
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3) writeonly buffer Y { TY y[]; };

const uint block = 4;  // sums a side an invocation
const uint depth_step = 16;
const uint tile_m = block * threads_m;
const uint tile_n = block * threads_n;
const uint pitch_m = tile_m + 1;  // odd, so that a column's elements lie in different banks
const uint pitch_n = tile_n + 1;
shared float left[depth_step * pitch_m];
shared float right[depth_step * pitch_n];

// Where a token's patch starts among the images' elements.
uint patch_offset(uint token) {
  const uint patch_number = token % patches;
  const uint corner_y = patch_number / patch_columns * patch_height;
  const uint corner_x = patch_number % patch_columns * patch_width;
  return token / patches * p.image_elements + corner_y * p.image_width + corner_x;
}

uint pixel_offset(uint k) {
  const uint line = k / patch_width;
  return line / patch_height * p.channel_elements + line % patch_height * p.image_width + k % patch_width;
}

void main() {
  const uint thread = gl_LocalInvocationID.x;
  const uint first_token = gl_WorkGroupID.x * tile_m;
  const uint first_dim = gl_WorkGroupID.y * tile_n;
  const uint tm = thread / threads_n, tn = thread % threads_n;

  // Staging: an invocation keeps its k within the step and walks down the rows.
  const uint stage_k = thread % depth_step;
  const uint stage_row = thread / depth_step;
  const uint stage_rows = local_size / depth_step;

  float sums[block][block];
  for (uint i = 0; i < block; ++i) {
    for (uint j = 0; j < block; ++j) sums[i][j] = 0.0;
  }

  for (uint k0 = 0; k0 < p.depth; k0 += depth_step) {
    const uint k = k0 + stage_k;
    const bool k_valid = k < p.depth;
    const uint pixel = k_valid ? pixel_offset(k) : 0;
    for (uint row = stage_row; row < tile_m; row += stage_rows) {
      const uint token = first_token + row;
      float value = 0.0;
      if (k_valid && token < p.tokens) value = image[patch_offset(token) + pixel];
      left[stage_k * pitch_m + row] = value;
    }
    for (uint row = stage_row; row < tile_n; row += stage_rows) {
      const uint dim = first_dim + row;
      float value = 0.0;
      if (k_valid && dim < p.dims) value = load_float(weight[dim * p.depth + k]);
      right[stage_k * pitch_n + row] = value;
    }
    barrier();
    for (uint s = 0; s < depth_step; ++s) {
      float a[block], b[block];
      for (uint i = 0; i < block; ++i) a[i] = left[s * pitch_m + tm + threads_m * i];
      for (uint j = 0; j < block; ++j) b[j] = right[s * pitch_n + tn + threads_n * j];
      for (uint i = 0; i < block; ++i) {
        for (uint j = 0; j < block; ++j) sums[i][j] = fma(a[i], b[j], sums[i][j]);
      }
    }
    barrier();
  }

  for (uint i = 0; i < block; ++i) {
    const uint token = first_token + tm + threads_m * i;
    for (uint j = 0; j < block; ++j) {
      const uint dim = first_dim + tn + threads_n * j;
      if (token >= p.tokens || dim >= p.dims) continue;
      const float offset = has_bias ? bias[dim] : 0.0;
      y[token * p.dims + dim] = store_as(TY, sums[i][j] + offset);
    }
  }
}
