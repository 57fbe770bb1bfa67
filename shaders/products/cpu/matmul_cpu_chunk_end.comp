//! variant f32 TC=float needs=addresses,int64,subgroup_control bind=addresses access=rrrrw
//! variant f16 TC=float16_t needs=addresses,int64,subgroup_control,storage16 bind=addresses access=rrrrw
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/types.glsl"
#include "matmul_cpu_chunk.h"

// The end of a product that matmul_cpu_chunk.comp computed: C = epilogue(sums), as rows, or in the blocks of the
// product that reads them.
//
//   workgroup  one subgroup: a block of rows (x) × a panel of columns (y)
layout(local_size_x_id = 4) in;
layout(constant_id = 5) const uint lanes = 8;
layout(constant_id = 6) const uint block_rows = 12;
layout(constant_id = 7) const uint unroll = 16;
layout(constant_id = 8) const bool into_blocks = false;  // C is the A of a product with as many rows
layout(constant_id = 9) const bool halves = false;       // blocks hold f32, of what C as f16 would hold

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Floats { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) writeonly buffer Result { TC v[]; };
layout(push_constant) uniform Push {
  Floats sums;
  Floats bias;
  Floats scale;
  Floats residual;
  Result c;
  MatmulChunkEndParams p;
};

// Of the lane's column.
float own_bias = 0.0;
float own_scale = 1.0;
#define EPILOGUE_BIAS(column) own_bias
#define EPILOGUE_SCALE(column) own_scale
#define EPILOGUE_RESIDUAL(at) residual.v[at]
#include "lib/epilogue.glsl"

void main() {
  const uint column = gl_WorkGroupID.y * lanes + gl_SubgroupInvocationID;
  if (column >= p.columns) return;
  if (epilogue_has_bias) own_bias = bias.v[column];
  if (epilogue_has_scale) own_scale = scale.v[column];
  const uint first_row = gl_WorkGroupID.x * block_rows;
  const uint count = min(block_rows, p.rows - first_row);
  uint from = (gl_WorkGroupID.y * p.blocks + gl_WorkGroupID.x) * block_rows * lanes + gl_SubgroupInvocationID;
  uint at = first_row * p.columns + column;
  // In blocks, a column of C is a value of the next product's K.
  const uint step_of_next = gl_WorkGroupID.x * (p.columns / unroll) + column / unroll;
  uint to = into_blocks ? step_of_next * block_rows * unroll + column % unroll : at;
  uint r = 0;
  do {
    const float y = epilogue(sums.v[from], column, at);
    c.v[to] = store_as(TC, halves ? rounded_to_half(y) : y);
    from += lanes;
    at += p.columns;
    to += into_blocks ? unroll : p.columns;
  } while (++r < count);
}
