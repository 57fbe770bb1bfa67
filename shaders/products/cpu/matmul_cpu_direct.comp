//! variant f32 TW=float WEIGHT_BYTES=4 TC=float needs=addresses,int64,subgroup_control bind=addresses access=rrrrrw
//! variant f32_f16 TW=float WEIGHT_BYTES=4 TC=float16_t needs=addresses,int64,subgroup_control,storage16 bind=addresses access=rrrrrw
//! variant f16_f32 TW=uint16_t WEIGHT_BYTES=2 TC=float needs=addresses,int64,subgroup_control,storage16 bind=addresses access=rrrrrw
//! variant f16 TW=uint16_t WEIGHT_BYTES=2 TC=float16_t needs=addresses,int64,subgroup_control,storage16 bind=addresses access=rrrrrw
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/own.glsl"
#include "lib/types.glsl"
#include "matmul_cpu_direct.h"

// C = epilogue(A·Wᵀ) without shared memory and barriers, for devices that run a workgroup's subgroups one
// after another on a CPU core.
//
//   workgroup  one subgroup: block_rows rows × a column a lane; x counts blocks of rows, y panels of
//              columns, so that workgroups that follow each other find their panel in the cache
//   lane       block_rows rows × 1 column, in registers
//   step       unroll values of K: first the lane's own weights of the step, then group_rows rows at a
//              time: as many sums as stay in registers, one after the other so that none waits for itself
//   end        the sums go to memory of the lane's own and through the epilogue row by row, whose code so
//              exists once
//
// Everything read from A has the same address in every lane, so it is a broadcast that costs nothing:
// the block comes from the workgroup, and the offsets are constants that fold into the instructions.
// Nor does an address of W differ between lanes: all read the whole row of the panel, and each keeps its own
// column (lib/own.glsl).
//   A  packed before each run by matmul_cpu_direct_rows.comp: [blocks][steps][block_rows][unroll], unless what
//      computes it wrote it so (into_blocks)
//   W  packed by matmul_cpu_direct_panels.comp, once where it is a constant: [panels][steps][unroll][lanes]
// K is padded with zeros, so edges only matter to the epilogue.
//
// The loops ask at their end whether they go on: such drivers run the body of a loop that asks in front
// once more under an empty mask, unless the number of turns is a constant, and that would read past the end.
layout(local_size_x_id = 4) in;
layout(constant_id = 5) const uint block_rows = 8;
layout(constant_id = 6) const uint group_rows = 8;
layout(constant_id = 7) const uint unroll = 8;
layout(constant_id = 8) const uint lanes = 8;  // of a subgroup, which has exactly this size
layout(constant_id = 9) const bool into_blocks = false;  // C is the A of a product with as many rows
layout(constant_id = 10) const bool halves = false;      // blocks hold f32, of what C as f16 would hold

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Floats { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Fours { vec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer Weights { TW v[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) writeonly buffer Result { TC v[]; };
layout(push_constant) uniform Push {
  Fours a;
  Weights w;
  Floats bias;
  Floats scale;
  Floats residual;
  Result c;
  MatmulDirectParams p;
};

// Of the lane's column.
float own_bias = 0.0;
float own_scale = 1.0;
#define EPILOGUE_BIAS(column) own_bias
#define EPILOGUE_SCALE(column) own_scale
#define EPILOGUE_RESIDUAL(at) residual.v[at]
#include "lib/epilogue.glsl"

Fours rows_at(Fours base, uint elements) { return Fours(uint64_t(base) + 4ul * elements); }
Weights weights_at(Weights base, uint elements) { return Weights(uint64_t(base) + uint64_t(WEIGHT_BYTES) * elements); }

#if WEIGHT_BYTES == 4
DEFINE_OWN_OF(Weights, float)
float own_weight(Weights weights, uint first) { return own_of(weights, first); }
#else
DEFINE_OWN_OF(Weights, uint)
float own_weight(Weights weights, uint first) { return unpackHalf2x16(own_of(weights, first)).x; }
#endif

void main() {
  const uint first_row = gl_WorkGroupID.x * block_rows;
  const uint column = gl_WorkGroupID.y * lanes + gl_SubgroupInvocationID;
  Fours rows = rows_at(a, first_row * p.steps * unroll);
  Weights weights = weights_at(w, gl_WorkGroupID.y * lanes * p.steps * unroll);

  float sum[block_rows];
  [[unroll]] for (uint r = 0; r < block_rows; ++r) sum[r] = 0.0;
  uint step = 0;
  do {
    float b[unroll];
    [[unroll]] for (uint u = 0; u < unroll; ++u) b[u] = own_weight(weights, u * lanes);
    [[unroll]] for (uint group = 0; group < block_rows; group += group_rows) {
      [[unroll]] for (uint u = 0; u < unroll; u += 4) {
        vec4 x[group_rows];
        [[unroll]] for (uint r = 0; r < group_rows; ++r) x[r] = rows.v[((group + r) * unroll + u) / 4];
        [[unroll]] for (uint i = 0; i < 4; ++i) {
          [[unroll]] for (uint r = 0; r < group_rows; ++r) sum[group + r] += x[r][i] * b[u + i];
        }
      }
    }
    rows = rows_at(rows, block_rows * unroll);
    weights = weights_at(weights, unroll * lanes);
  } while (++step < p.steps);

  float kept[block_rows];
  [[unroll]] for (uint r = 0; r < block_rows; ++r) kept[r] = sum[r];
  if (column >= p.columns) return;
  if (epilogue_has_bias) own_bias = bias.v[column];
  if (epilogue_has_scale) own_scale = scale.v[column];
  const uint count = min(block_rows, p.rows - first_row);
  // In blocks, a column of C is a value of the next product's K.
  const uint step_of_next = gl_WorkGroupID.x * (p.columns / unroll) + column / unroll;
  uint to = into_blocks ? step_of_next * block_rows * unroll + column % unroll : first_row * p.columns + column;
  uint r = 0;
  do {
    const uint at = (first_row + r) * p.columns + column;
    const float y = epilogue(kept[r], column, at);
    c.v[to] = store_as(TC, halves ? rounded_to_half(y) : y);
    to += into_blocks ? unroll : p.columns;
  } while (++r < count);
}
