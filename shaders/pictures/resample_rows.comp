//! variant u32
// The horizontal pass of Pillow's resize: every row of the pictures that the vertical pass will need, in
// integers. Neighbouring invocations take
//   neighbouring columns, four rows each            on GPUs, where loads side by side are one
//   neighbouring rows of one column (rows_in_lanes) on CPUs, where a load is cheap if all lanes' address is
//                                                   the same: so the list and the weights are
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "resample.h"
#include "lib/pixels.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 64;  // divides the block's rows
layout(constant_id = 1) const bool rows_in_lanes = false;
layout(constant_id = 2) const uint columns = 224;

layout(push_constant) uniform Push { ResampleParams p; };
layout(set = 0, binding = 0) readonly buffer Pixels { uint pixels[]; };
layout(set = 0, binding = 1) readonly buffer Table { uint table[]; };
layout(set = 0, binding = 2) writeonly buffer Y { uint y[]; };

const uint block_rows = VITRINE_RESAMPLE_BLOCK_ROWS;
const uint rows_each = 4;

void main() {
  const uint group = linear_group();
  uint block, column, first_row;
  if (rows_in_lanes) {
    const uint parts = block_rows / local_size;
    block = group / columns / parts;
    column = group % columns;
    first_row = group / columns % parts * local_size + gl_LocalInvocationID.x;
  } else {
    const uint tiles = (columns + local_size - 1) / local_size, parts = block_rows / rows_each;
    block = group / tiles / parts;
    column = group % tiles * local_size + gl_LocalInvocationID.x;
    first_row = group / tiles % parts * rows_each;
  }
  if (block >= p.blocks) return;
  const uint picture = table[block];
  if (picture == VITRINE_RESAMPLE_UNUSED) return;
  const uint header = p.blocks + picture * VITRINE_RESAMPLE_PICTURE_WORDS;
  const uint row = (block - table[header + VITRINE_RESAMPLE_FIRST_BLOCK]) * block_rows + first_row;
  const uint height = table[header + VITRINE_RESAMPLE_HEIGHT];
  if (row >= height || column < table[header + VITRINE_RESAMPLE_LEFT] ||
      column >= table[header + VITRINE_RESAMPLE_RIGHT])
    return;

  const uint taps = table[header + VITRINE_RESAMPLE_COLUMNS] + column * VITRINE_RESAMPLE_TAP_WORDS;
  const uint count = table[taps + 1], weights = table[taps + 2];
  const uint width = table[header + VITRINE_RESAMPLE_WIDTH];
  const uint from = table[header + VITRINE_RESAMPLE_PIXELS] + row * width + table[taps];
  const ivec3 half_unit = ivec3(1 << (VITRINE_RESAMPLE_PRECISION - 1));
  const uint to = (block * block_rows + first_row) * columns + column;

  if (rows_in_lanes) {
    ivec3 sum = half_unit;
    for (uint k = 0; k < count; ++k) sum += unpack_pixel(pixels[from + k]) * int(table[weights + k]);
    y[to] = pack_sums(sum);
    return;
  }
  ivec3 sums[rows_each] = {half_unit, half_unit, half_unit, half_unit};
  // Rows past the last one are computed from the last one's pixels and not written.
  const uint last = min(height - row, rows_each) - 1;
  for (uint k = 0; k < count; ++k) {
    const int weight = int(table[weights + k]);
    for (uint i = 0; i < rows_each; ++i)
      sums[i] += unpack_pixel(pixels[from + min(i, last) * width + k]) * weight;
  }
  for (uint i = 0; i < rows_each; ++i) {
    if (i <= last) y[to + i * columns] = pack_sums(sums[i]);
  }
}
