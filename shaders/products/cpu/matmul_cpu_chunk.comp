//! variant f32 TW=float WEIGHT_BYTES=4 needs=addresses,int64,subgroup_control bind=addresses access=rrx
//! variant f16 TW=uint16_t WEIGHT_BYTES=2 needs=addresses,int64,subgroup_control,storage16 bind=addresses access=rrx
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/types.glsl"
#include "matmul_cpu_chunk.h"

// Adds a chunk of K to the sums of C = A·Wᵀ, for CPU-type devices of which Capabilities::loops_gather holds:
// a loop over K would make every load a gather lane by lane, ten times the work of what is done with it. So K
// is cut into chunks, a dispatch each, and a chunk is code without a loop or a branch. All products of a model
// share it: what differs is parameters, and the epilogue is matmul_cpu_chunk_end.comp.
//
//   workgroup  one subgroup: block_rows rows × a column a lane; x counts blocks of rows, y panels of columns
//   lane       block_rows sums in registers, with one weight and one temporary, so that none is spilled
//   chunk      steps × unroll values of K: from each step the lane's own weights, then all rows, one value
//              after the other
//   end        the sums go to [panels][blocks][block_rows][lanes]
//
// A and W are packed as for matmul_cpu_direct.comp.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint lanes = 8;  // of a subgroup, which has exactly this size
layout(constant_id = 2) const uint block_rows = 12;
layout(constant_id = 3) const uint unroll = 16;
layout(constant_id = 4) const uint steps = 16;  // of the chunk
// A lies in strips [blocks][K][block_rows] (matmul_cpu_direct_strips.comp).
layout(constant_id = 5) const bool rows_by_depth = false;

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Fours { vec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Ones { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer Weights { TW v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Sums { float v[]; };
layout(push_constant) uniform Push {
  Fours a;
  Weights w;
  Sums sums;
  MatmulChunkParams p;
};
#include "lib/known.glsl"
#include "lib/product_chunk.glsl"

void main() {
  const uint block = known_4_digits(gl_WorkGroupID.x), panel = known_3_digits(gl_WorkGroupID.y);
  Fours rows = Fours(uint64_t(a) + 4ul * ((block * p.steps + p.first_step) * block_rows * unroll));
  Weights weights =
      Weights(uint64_t(w) + uint64_t(WEIGHT_BYTES) * ((panel * p.steps + p.first_step) * unroll * lanes));
  const uint tile = (panel * p.blocks + block) * block_rows * lanes;
  Sums before = Sums(uint64_t(sums) + 4ul * tile);

  load_sums(before, p.go_on != 0);
  [[unroll]] for (uint step = 0; step < steps; ++step) {
    float b[unroll];
    [[unroll]] for (uint u = 0; u < unroll; ++u) b[u] = own_weight(weights, (step * unroll + u) * lanes);
    [[unroll]] for (uint u = 0; u < unroll; u += 4) {
      vec4 x[block_rows];
      [[unroll]] for (uint r = 0; r < block_rows; ++r) {
        if (rows_by_depth) {
          [[unroll]] for (uint i = 0; i < 4; ++i) x[r][i] = Ones(rows).v[(step * unroll + u + i) * block_rows + r];
        } else {
          x[r] = rows.v[((step * block_rows + r) * unroll + u) / 4];
        }
      }
      [[unroll]] for (uint i = 0; i < 4; ++i) {
        [[unroll]] for (uint r = 0; r < block_rows; ++r) sum[r] += x[r][i] * b[u + i];
      }
    }
  }
  store_sums(sums, tile);
}
