//! variant u32
// The vertical pass of Pillow's resize, on what resample_rows.comp left: a workgroup takes pixels of one
// output row, so that the list and the weights are the same for all of it.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "resample.h"
#include "lib/pixels.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 64;
layout(constant_id = 1) const uint columns = 224;
layout(constant_id = 2) const uint rows = 224;

layout(push_constant) uniform Push { ResampleParams p; };
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) readonly buffer Table { uint table[]; };
layout(set = 0, binding = 2) writeonly buffer Y { uint y[]; };

void main() {
  const uint group = linear_group();
  const uint tiles = (columns + local_size - 1) / local_size;
  const uint picture = group / tiles / rows, row = group / tiles % rows;
  const uint column = group % tiles * local_size + gl_LocalInvocationID.x;
  if (picture >= p.pictures || column >= columns) return;
  const uint header = p.blocks + picture * VITRINE_RESAMPLE_PICTURE_WORDS;
  const uint to = (picture * rows + row) * columns + column;
  if (table[header + VITRINE_RESAMPLE_COLUMNS] == 0) return;
  if (row < table[header + VITRINE_RESAMPLE_TOP] || row >= table[header + VITRINE_RESAMPLE_BOTTOM] ||
      column < table[header + VITRINE_RESAMPLE_LEFT] || column >= table[header + VITRINE_RESAMPLE_RIGHT]) {
    y[to] = table[header + VITRINE_RESAMPLE_FILL];
    return;
  }
  const uint taps = table[header + VITRINE_RESAMPLE_ROWS] + row * VITRINE_RESAMPLE_TAP_WORDS;
  const uint count = table[taps + 1], weights = table[taps + 2];
  const uint source_row =
      table[header + VITRINE_RESAMPLE_FIRST_BLOCK] * VITRINE_RESAMPLE_BLOCK_ROWS + table[taps];
  const uint from = source_row * columns + column;
  ivec3 sum = ivec3(1 << (VITRINE_RESAMPLE_PRECISION - 1));
  for (uint k = 0; k < count; ++k)
    sum += unpack_pixel(x[from + k * columns]) * int(table[weights + k]);
  y[to] = pack_sums(sum);
}
