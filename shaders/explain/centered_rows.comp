//! variant f32
// y = x - mean of its column, over a range of rows; one invocation a column. The mean is corrected by that of
// what it leaves, so that rows which are all the same leave nothing but the last bit.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "centered_rows.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool transposed = false;

layout(push_constant) uniform Push { CenteredRowsParams p; };
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 2) writeonly buffer Means { float means[]; };

const uint chunk = 32;

// Of what is left of column `column` when `offset` is taken off.
float mean_of(uint column, float offset) {
  float sum = 0.0;
  for (uint first = 0; first < p.rows; first += chunk) {
    const uint end = min(first + chunk, p.rows);
    float partial = 0.0;
    for (uint row = first; row < end; ++row) partial += x[(p.first_row + row) * p.width + column] - offset;
    sum += partial;
  }
  return sum / float(p.rows);
}

void main() {
  const uint column = linear_invocation();
  if (column >= p.width) return;
  float mean = mean_of(column, x[p.first_row * p.width + column]);
  mean += x[p.first_row * p.width + column];
  mean += mean_of(column, mean);
  for (uint row = 0; row < p.rows; ++row) {
    const float left = x[(p.first_row + row) * p.width + column] - mean;
    y[transposed ? column * p.rows + row : row * p.width + column] = left;
  }
  means[column] = mean;
}
