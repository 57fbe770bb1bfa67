//! variant f32 T=uint ELEMENT_BYTES=4 needs=addresses,int64,subgroup_control bind=addresses access=rw
//! variant f16 T=uint16_t ELEMENT_BYTES=2 needs=addresses,int64,subgroup_control,storage16 bind=addresses access=rw
// Matrices that lie one after the other, rows into columns, for devices that run a workgroup's subgroups one
// after another on a CPU core: no shared memory, and no load whose address differs between lanes.
//
//   workgroup  one subgroup: a column a lane (x), block_rows rows (y, which counts those of all matrices)
//   step       eight rows: all lanes read the whole row of their block and each keeps its own column, which is
//              one vector load to the driver (see lib/own.glsl); then each writes its eight values, which
//              lie side by side in Y, as 64-bit words where these are aligned
//
// Rows past the last one are the last one again and not written. A block of columns that ends behind the matrix
// reads what follows; behind the last matrix, the buffer's tail.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/own.glsl"
#include "lib/types.glsl"
#include "moves/transpose.h"
layout(local_size_x_id = 0) in;  // lanes
layout(constant_id = 1) const uint lanes = 8;  // of a subgroup, which has exactly this size
layout(constant_id = 2) const uint block_rows = 64;
layout(constant_id = 3) const bool whole_words = false;  // columns of Y are a multiple of 8: every step is whole

layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer Elements { T v[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) writeonly buffer Result { T v[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) writeonly buffer ResultWords { uint64_t v[]; };
layout(push_constant) uniform Push {
  Elements x;
  Result y;
  TransposeParams p;
};

const uint step_rows = 8;

DEFINE_OWN_OF(Elements, uint)

void main() {
  const uint matrix = gl_WorkGroupID.y / p.tiles_across;
  const uint first_row = gl_WorkGroupID.y % p.tiles_across * block_rows;
  const uint last_row = min(first_row + block_rows, p.rows);
  const uint first_column = gl_WorkGroupID.x * lanes;
  const uint column = first_column + gl_SubgroupInvocationID;
  const uint base = matrix * p.rows * p.columns;
  const uint to = base + column * p.rows;
  uint row = first_row;
  do {
    uint own[step_rows];
    [[unroll]] for (uint i = 0; i < step_rows; ++i) {
      const uint at = base + min(row + i, p.rows - 1) * p.columns + first_column;
      own[i] = own_of(Elements(uint64_t(x) + uint64_t(ELEMENT_BYTES) * at), 0);
    }
    if (column < p.columns) {
      if (whole_words) {
        ResultWords words = ResultWords(uint64_t(y) + uint64_t(ELEMENT_BYTES) * (to + row));
#if ELEMENT_BYTES == 4
        [[unroll]] for (uint i = 0; i < 4; ++i) words.v[i] = pack64(uvec2(own[2 * i], own[2 * i + 1]));
#else
        [[unroll]] for (uint i = 0; i < 2; ++i) {
          words.v[i] = pack64(uvec2(own[4 * i] | own[4 * i + 1] << 16, own[4 * i + 2] | own[4 * i + 3] << 16));
        }
#endif
      } else {
        [[unroll]] for (uint i = 0; i < step_rows; ++i) {
          if (row + i < p.rows) y.v[to + row + i] = T(own[i]);
        }
      }
    }
    row += step_rows;
  } while (row < last_row);
}
