//! variant f32 TW=float WEIGHT_BYTES=4 needs=addresses,int64,subgroup_control bind=addresses access=rrx
//! variant f16 TW=uint16_t WEIGHT_BYTES=2 needs=addresses,int64,subgroup_control,storage16 bind=addresses access=rrx
// matmul_cpu_chunk.comp whose A is patches where they lie in their images, some neighbours of a row a block: for weights so
// narrow that packing the patches would take longer than multiplying them. A chunk of K is whole lines of pixels, that
// lie alike in every patch and every chunk.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/types.glsl"
#include "patch_embed_cpu_chunk.h"
#define PATCHES_FIRST_ID 5
#define PATCHES_PLACES_ALONE
#include "lib/patches.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint lanes = 8;       // of a subgroup, which has exactly this size
layout(constant_id = 2) const uint block_rows = 7;  // a divisor of patch_columns
layout(constant_id = 3) const uint unroll = 16;
layout(constant_id = 4) const uint steps = 16;  // of the chunk

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Pixels { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer Weights { TW v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Sums { float v[]; };
layout(push_constant) uniform Push {
  Pixels images;
  Weights w;
  Sums sums;
  PatchEmbedChunkParams p;
};
#include "lib/known.glsl"
#include "lib/product_chunk.glsl"

void main() {
  // Panels of the same pixels follow each other.
  const uint panel = known_3_digits(gl_WorkGroupID.x), block = known_4_digits(gl_WorkGroupID.y);
  Pixels pixels = Pixels(uint64_t(images) + 4ul * (patch_start(block * block_rows) + p.first_pixel));
  Weights weights =
      Weights(uint64_t(w) + uint64_t(WEIGHT_BYTES) * ((panel * p.steps + p.first_step) * unroll * lanes));
  const uint tile = (panel * p.blocks + block) * block_rows * lanes;

  load_sums(Sums(uint64_t(sums) + 4ul * tile), p.go_on != 0);
  [[unroll]] for (uint k = 0; k < steps * unroll; ++k) {
    const float own = own_weight(weights, k * lanes);
    [[unroll]] for (uint r = 0; r < block_rows; ++r) sum[r] += pixels.v[patch_offset(k) + r * patch_width] * own;
  }
  store_sums(sums, tile);
}
