//! variant f32 TC=float needs=addresses,int64 bind=addresses access=rrrrrw
//! variant f16 TC=float16_t needs=addresses,int64,storage16 bind=addresses access=rrrrrw
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "lib/types.glsl"
#include "matmul_direct.h"

// C = epilogue(A·Wᵀ) without shared memory and barriers, for devices that run a workgroup's subgroups one
// after another on a CPU core.
//
//   workgroup  block_rows rows × as many columns as it has lanes; x counts blocks of rows, y panels of
//              columns, so that workgroups that follow each other find their panel in the cache
//   lane       block_rows rows × 1 column, in registers
//   step       unroll values of K: first the lane's own weights of the step (each one gather for all lanes),
//              then group_rows rows at a time, the whole step for each
//
// Everything read from A has the same address in every lane, so it is a broadcast that costs nothing:
// the block comes from the workgroup, and the offsets are constants that fold into the instructions.
//   A  packed before each run by matmul_direct_rows.comp: [blocks][steps][block_rows][unroll]
//   W  packed once by matmul_direct_panels.comp: [panels][steps][unroll][lanes]
// Both are padded with zeros, so edges only matter to the epilogue.
//
// The trip count of the loop is a constant, because such drivers run the body of any other loop once
// more under an empty mask, with the uniform loads unmasked; the plan keeps a step's room behind A.
layout(local_size_x_id = 4) in;
layout(constant_id = 5) const uint block_rows = 8;
layout(constant_id = 6) const uint group_rows = 8;
layout(constant_id = 7) const uint steps = 1;
layout(constant_id = 8) const uint unroll = 8;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Floats { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) writeonly buffer Result { TC v[]; };
layout(push_constant) uniform Push {
  Floats a;
  Floats w;
  Floats bias;
  Floats scale;
  Floats residual;
  Result c;
  MatmulDirectParams p;
};

#define EPILOGUE_BIAS(column) bias.v[column]
#define EPILOGUE_SCALE(column) scale.v[column]
#define EPILOGUE_RESIDUAL(at) residual.v[at]
#include "lib/epilogue.glsl"

Floats offset_by(Floats base, uint elements) { return Floats(uint64_t(base) + 4ul * elements); }

void main() {
  const uint first_row = gl_WorkGroupID.x * block_rows;
  const uint column = gl_WorkGroupID.y * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  Floats rows = offset_by(a, first_row * steps * unroll);
  Floats weights = offset_by(w, gl_WorkGroupID.y * gl_WorkGroupSize.x * steps * unroll + gl_LocalInvocationID.x);

  float sum[block_rows];
  [[unroll]] for (uint r = 0; r < block_rows; ++r) sum[r] = 0.0;
  [[dont_unroll]] for (uint step = 0; step < steps; ++step) {
    float b[unroll];
    [[unroll]] for (uint u = 0; u < unroll; ++u) b[u] = weights.v[u * gl_WorkGroupSize.x];
    [[unroll]] for (uint group = 0; group < block_rows; group += group_rows) {
      [[unroll]] for (uint u = 0; u < unroll; ++u) {
        [[unroll]] for (uint r = 0; r < group_rows; ++r) {
          if (group + r < block_rows) sum[group + r] += rows.v[(group + r) * unroll + u] * b[u];
        }
      }
    }
    rows = offset_by(rows, block_rows * unroll);
    weights = offset_by(weights, unroll * gl_WorkGroupSize.x);
  }

  if (column >= p.columns) return;
  [[unroll]] for (uint r = 0; r < block_rows; ++r) {
    const uint row = first_row + r;
    if (row < p.rows) {
      const uint at = row * p.columns + column;
      c.v[at] = store_as(TC, epilogue(sum[r], column, at));
    }
  }
}
