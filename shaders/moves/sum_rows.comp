//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
// Y[i] = X[i] + X[i + stride] + X[i + 2 stride] .., or the same of A·B element by element. One invocation an
// element of Y, so neighbours read side by side however short the rows are. Summing many rows takes two
// dispatches: the first adds every n-th row and leaves n rows, the second adds these. A sum of a hundred thousand
// terms so goes by partial sums of a few hundred, whose rounding errors stay small.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "sum_rows.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool of_products = false;

layout(push_constant) uniform Push { SumRowsParams p; };
layout(set = 0, binding = 0) readonly buffer A { T a[]; };
layout(set = 0, binding = 1) readonly buffer B { T b[]; };  // of products
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.stride) return;
  float sum = 0.0;
  for (uint at = i; at < p.count; at += p.stride) {
    const float x = load_float(a[at]);
    sum += of_products ? x * load_float(b[at]) : x;
  }
  y[i] = sum;
}
