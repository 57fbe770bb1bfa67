//! variant f32 needs=addresses,int64,subgroup_control bind=addresses access=rrrrrw
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/own.glsl"
#include "matmul_cpu_direct.h"

// matmul_cpu_direct.comp for operands that lie with K outermost: A as [K][rows], W as [K][columns], or one of them.
// What a step reads of either is side by side as it lies, so short rows are read in place; long ones are cut into
// strips by matmul_cpu_direct_strips.comp first.
//
//   workgroup  as there; z counts slices of K, each of which leaves a C of its own for matmul_slices.comp. That
//              is for the gradient of a weight: few outputs, each a sum over all rows of a batch
//   step       as there; what K has beyond whole steps goes value by value, by the last slice
//
// A block that ends behind the last row or column reads what follows, and nothing made of it is stored.
layout(local_size_x_id = 4) in;
layout(constant_id = 5) const uint block_rows = 8;
layout(constant_id = 6) const uint group_rows = 8;
layout(constant_id = 7) const uint unroll = 16;
layout(constant_id = 8) const uint lanes = 8;  // of a subgroup, which has exactly this size
layout(constant_id = 9) const bool rows_in_blocks = false;  // A is packed by matmul_cpu_direct_rows.comp
// In strips the way from one value of K to the next is known, and offsets fold into the instructions.
layout(constant_id = 10) const bool rows_in_strips = false;
layout(constant_id = 11) const bool weight_in_strips = false;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Floats { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Result { float v[]; };
layout(push_constant) uniform Push {
  Floats a;
  Floats w;
  Floats bias;
  Floats scale;
  Floats residual;
  Result c;
  MatmulDirectColumnsParams p;
};

// Of the lane's column.
float own_bias = 0.0;
float own_scale = 1.0;
#define EPILOGUE_BIAS(column) own_bias
#define EPILOGUE_SCALE(column) own_scale
#define EPILOGUE_RESIDUAL(at) residual.v[at]
#include "lib/epilogue.glsl"

Floats at(Floats base, uint elements) { return Floats(uint64_t(base) + 4ul * elements); }

DEFINE_OWN_OF(Floats, float)

void main() {
  const uint first_row = gl_WorkGroupID.x * block_rows;
  const uint first_column = gl_WorkGroupID.y * lanes;
  const uint column = first_column + gl_SubgroupInvocationID;
  const uint whole_steps = p.depth / unroll;
  uint step = gl_WorkGroupID.z * p.slice_steps;
  const uint end = min(step + p.slice_steps, whole_steps);

  const uint row_stride = rows_in_strips ? block_rows : p.row_stride;
  const uint weight_stride = weight_in_strips ? lanes : p.weight_stride;
  const uint row_step = (rows_in_blocks ? block_rows : row_stride) * unroll;
  Floats rows = at(a, gl_WorkGroupID.x * p.row_block + step * row_step);
  Floats weights = at(w, gl_WorkGroupID.y * p.weight_block + step * unroll * weight_stride);

  float sum[block_rows];
  [[unroll]] for (uint r = 0; r < block_rows; ++r) sum[r] = 0.0;
  if (step < end) {
    do {
      float b[unroll];
      [[unroll]] for (uint u = 0; u < unroll; ++u) b[u] = own_of(weights, u * weight_stride);
      [[unroll]] for (uint group = 0; group < block_rows; group += group_rows) {
        [[unroll]] for (uint u = 0; u < unroll; ++u) {
          float x[group_rows];
          [[unroll]] for (uint r = 0; r < group_rows; ++r) {
            x[r] = rows.v[rows_in_blocks ? (group + r) * unroll + u : u * row_stride + group + r];
          }
          [[unroll]] for (uint r = 0; r < group_rows; ++r) sum[group + r] += x[r] * b[u];
        }
      }
      rows = at(rows, row_step);
      weights = at(weights, unroll * weight_stride);
    } while (++step < end);
  }
  const bool last_slice = gl_WorkGroupID.z + 1 == gl_NumWorkGroups.z;
  if (last_slice && whole_steps * unroll < p.depth) {
    uint k = whole_steps * unroll;
    do {
      const float b = own_of(weights, 0);
      [[unroll]] for (uint r = 0; r < block_rows; ++r) sum[r] += rows.v[rows_in_blocks ? r * unroll : r] * b;
      rows = at(rows, rows_in_blocks ? 1 : row_stride);
      weights = at(weights, weight_stride);
    } while (++k < p.depth);
  }

  float kept[block_rows];
  [[unroll]] for (uint r = 0; r < block_rows; ++r) kept[r] = sum[r];
  if (column >= p.columns) return;
  if (epilogue_has_bias) own_bias = bias.v[column];
  if (epilogue_has_scale) own_scale = scale.v[column];
  const uint count = min(block_rows, p.rows - first_row);
  Result result = Result(uint64_t(c) + 4ul * (gl_WorkGroupID.z * p.rows * p.columns));
  uint to = first_row * p.columns + column;
  uint r = 0;
  do {
    result.v[to] = epilogue(kept[r], column, to);
    to += p.columns;
  } while (++r < count);
}
