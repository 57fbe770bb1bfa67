//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
// Each group g of a row has a matrix of its own: y[row][g][n] = sum over k of x[row][g][k] w[g][n][k] + bias[g][n];
// where several sets of groups read the same slices, that of group g is g modulo their number. Turned, it is
// the derivative: y[row][g][n] = sum over sets and k of x[row][set][g][k] w[set][g][k][n].
// The groups are heads and the matrices small, down to 4x4: an invocation makes one column of rows_each
// rows, so that a weight is read once for all of them, and neighbouring invocations differ in the column.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "grouped_matmul.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint rows_each = 4;
layout(constant_id = 2) const bool has_bias = false;
layout(constant_id = 3) const bool turned = false;  // w is [g][k][n]
layout(constant_id = 4) const uint sets = 1;

layout(push_constant) uniform Push { GroupedMatmulParams p; };
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) readonly buffer W { T w[]; };
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3) writeonly buffer Y { T y[]; };

void main() {
  const uint job = linear_invocation();
  if (job >= p.jobs) return;
  const uint width = p.groups * p.n;
  const uint column = job % width;
  const uint first_row = job / width * rows_each;
  const uint group = column / p.n;

  // What goes into all groups of a row, and the first of them that goes into this one.
  const uint slices = turned ? p.groups * sets : p.groups / sets;
  float sums[rows_each];
  [[unroll]] for (uint i = 0; i < rows_each; ++i) sums[i] = 0.0;
  for (uint set = 0; set < (turned ? sets : 1); ++set) {
    const uint slice = turned ? set * p.groups + group : group % slices;
    uint at[rows_each];
    [[unroll]] for (uint i = 0; i < rows_each; ++i) {
      // A row past the end is the last one again: computed, not stored.
      at[i] = (min(first_row + i, p.rows - 1) * slices + slice) * p.k;
    }
    for (uint k = 0; k < p.k; ++k) {
      const float weight = load_float(w[turned ? (slice * p.k + k) * p.n + column % p.n : column * p.k + k]);
      [[unroll]] for (uint i = 0; i < rows_each; ++i) sums[i] += load_float(x[at[i] + k]) * weight;
    }
  }
  const float offset = has_bias ? bias[column] : 0.0;
  [[unroll]] for (uint i = 0; i < rows_each; ++i) {
    const uint row = first_row + i;
    if (row < p.rows) y[row * width + column] = store_as(T, sums[i] + offset);
  }
}
