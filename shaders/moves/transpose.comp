//! variant f32 T=uint
//! variant f16 T=uint16_t needs=storage16
// Matrices that lie one after the other, rows into columns. A workgroup reads a square tile row by row into
// shared memory and writes it column by column, so that both ways neighbours move neighbouring elements. Bits
// are moved, not numbers.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "transpose.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 256;  // a multiple of tile
layout(constant_id = 1) const uint tile = 32;

layout(push_constant) uniform Push { TransposeParams p; };
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { T y[]; };

const uint pitch = tile + 1;  // a column's elements lie in different banks
shared uint elements[tile * pitch];

void main() {
  const uint group = linear_group();
  if (group >= p.tiles) return;
  const uint tiles_down = (p.rows + tile - 1) / tile;
  const uint matrix = group / (tiles_down * p.tiles_across);
  const uint within = group % (tiles_down * p.tiles_across);
  const uint first_row = within / p.tiles_across * tile;
  const uint first_column = within % p.tiles_across * tile;
  const uint base = matrix * p.rows * p.columns;
  const uint across = gl_LocalInvocationID.x % tile;

  for (uint down = gl_LocalInvocationID.x / tile; down < tile; down += local_size / tile) {
    const uint row = first_row + down, column = first_column + across;
    if (row < p.rows && column < p.columns) elements[down * pitch + across] = uint(x[base + row * p.columns + column]);
  }
  barrier();
  for (uint down = gl_LocalInvocationID.x / tile; down < tile; down += local_size / tile) {
    const uint row = first_column + down, column = first_row + across;  // of Y
    if (row < p.columns && column < p.rows) y[base + row * p.rows + column] = T(elements[across * pitch + down]);
  }
}
