//! variant f32 ADDRESSES=0
//! variant f32_quads ADDRESSES=1 needs=addresses,int64 bind=addresses access=rrww
// dw[g][n][k] = sum over rows of dy[row][g][n] x[row][g][k], and db[g][n] = sum over rows of dy[row][g][n], for
// matrices so small that all there is to share out are the rows:
//   workgroup   a tile of 4 x 4 sums of one group
//   invocation  every local_size-th row, 16 sums in registers; then each sum is added up over the workgroup
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/index.glsl"
#include "weight_gradient.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 64;
layout(constant_id = 1) const uint n = 8;  // of a group
layout(constant_id = 2) const uint k = 8;
layout(constant_id = 3) const uint groups = 1;
layout(constant_id = 4) const bool has_bias = true;
layout(constant_id = 5) const uint slices = 1;  // of x: group g has that of g modulo their number

const uint side = 4;
const uint chunk = 8;  // rows that are summed before they are added to the others
const uint tiles_n = (n + side - 1) / side, tiles_k = (k + side - 1) / side;

#if ADDRESSES
// By fours, for devices that run a workgroup on a CPU core: n and k are multiples of four.
#include "lib/quads.glsl"
layout(push_constant) uniform Push {
  InWords dy;
  InWords x;
  OutFloats dw;
  OutFloats db;
  WeightGradientParams p;
};
vec4 load_dy(uint row, uint group, uint first) { return load_quad_f32(dy, ((row * groups + group) * n + first) / 4); }
vec4 load_x(uint row, uint group, uint first) { return load_quad_f32(x, ((row * slices + group % slices) * k + first) / 4); }
void write_dw(uint i, float value) { dw.at[i] = value; }
void write_db(uint i, float value) { db.at[i] = value; }
#else
layout(push_constant) uniform Push { WeightGradientParams p; };
layout(set = 0, binding = 0) readonly buffer DY { float dy[]; };
layout(set = 0, binding = 1) readonly buffer X { float x[]; };
layout(set = 0, binding = 2) writeonly buffer DW { float dw[]; };
layout(set = 0, binding = 3) writeonly buffer DB { float db[]; };
vec4 load_dy(uint row, uint group, uint first) {
  vec4 v = vec4(0.0);
  [[unroll]] for (uint i = 0; i < side; ++i) {
    if (first + i < n) v[i] = dy[(row * groups + group) * n + first + i];
  }
  return v;
}
vec4 load_x(uint row, uint group, uint first) {
  vec4 v = vec4(0.0);
  [[unroll]] for (uint i = 0; i < side; ++i) {
    if (first + i < k) v[i] = x[(row * slices + group % slices) * k + first + i];
  }
  return v;
}
void write_dw(uint i, float value) { dw[i] = value; }
void write_db(uint i, float value) { db[i] = value; }
#endif

const uint values = side * side + side;
shared float parts[values * local_size];

void add_row(uint row, uint group, uint first_n, uint first_k, inout vec4 sums[side], inout vec4 bias) {
  const vec4 a = load_dy(row, group, first_n), b = load_x(row, group, first_k);
  [[unroll]] for (uint i = 0; i < side; ++i) sums[i] += a[i] * b;
  bias += a;
}

void main() {
  const uint number = linear_group();
  if (number >= p.groups) return;
  const uint first_k = number % tiles_k * side, first_n = number / tiles_k % tiles_n * side;
  const uint group = number / (tiles_k * tiles_n);
  const uint lane = gl_LocalInvocationID.x;

  vec4 sums[side] = vec4[side](vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0)), bias = vec4(0.0);
  for (uint first = 0; first < p.rows; first += chunk * local_size) {
    vec4 part[side] = vec4[side](vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0)), bias_part = vec4(0.0);
    if (first + chunk * local_size <= p.rows) {
      [[unroll]] for (uint i = 0; i < chunk; ++i) {
        add_row(first + i * local_size + lane, group, first_n, first_k, part, bias_part);
      }
    } else {
      for (uint row = first + lane; row < p.rows; row += local_size) {
        add_row(row, group, first_n, first_k, part, bias_part);
      }
    }
    [[unroll]] for (uint i = 0; i < side; ++i) sums[i] += part[i];
    bias += bias_part;
  }

  [[unroll]] for (uint i = 0; i < side; ++i) {
    [[unroll]] for (uint j = 0; j < side; ++j) parts[(i * side + j) * local_size + lane] = sums[i][j];
    parts[(side * side + i) * local_size + lane] = bias[i];
  }
  barrier();
  for (uint value = lane; value < values; value += local_size) {
    float sum = 0.0;
    for (uint i = 0; i < local_size; ++i) sum += parts[value * local_size + i];
    if (value < side * side) {
      const uint row = first_n + value / side, column = first_k + value % side;
      if (row < n && column < k) write_dw((group * n + row) * k + column, sum);
    } else if (has_bias && first_k == 0) {
      const uint row = first_n + value - side * side;
      if (row < n) write_db(group * n + row, sum);
    }
  }
}
