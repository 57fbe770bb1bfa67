//! variant f32 ADDRESSES=0
//! variant f32_quads ADDRESSES=1 needs=addresses,int64 bind=addresses access=rw
// The sum of squares over all workgroups, or, in a second pass, of what they left; the last pass makes of it
//   y[1]  the norm, its root; NaN where the sum is not finite, so that no infinity ends in a scale of 0
//   y[0]  what brings the norm down to max_norm, at most 1; NaN where the norm is
// An invocation sums what is `stride` apart in chunks: the rounding error grows with their number and their
// length, not with the product of both.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "clip_scale.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 128;
layout(constant_id = 1) const bool squares = true;  // else the numbers are sums already
layout(constant_id = 2) const bool last = true;
#include "lib/reduce.glsl"

#if ADDRESSES
// By fours, for devices that run a workgroup on a CPU core.
#include "lib/quads.glsl"
layout(push_constant) uniform Push {
  InWords x;
  OutFloats y;
  ClipScaleParams p;
};
const uint width = 4;
float term(uint i) {
  vec4 v = load_quad_f32(x, i);
  if (squares) v *= v;
  return (v.x + v.y) + (v.z + v.w);
}
// What is left of a quad.
float rest() {
  float sum = 0.0;
  for (uint i = p.count / width * width; i < p.count; ++i) {
    const float v = Floats(x).at[i];
    sum += squares ? v * v : v;
  }
  return sum;
}
void write(uint i, float value) { y.at[i] = value; }
#else
layout(push_constant) uniform Push { ClipScaleParams p; };
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
const uint width = 1;
float term(uint i) { return squares ? x[i] * x[i] : x[i]; }
float rest() { return 0.0; }
void write(uint i, float value) { y[i] = value; }
#endif

const uint chunk = 16;

void main() {
  const uint group = linear_group();
  if (group >= p.groups) return;
  const uint lane = gl_LocalInvocationID.x;
  const uint number = group * local_size + lane, stride = p.groups * local_size;
  const uint terms = p.count / width;

  float sum = number == 0 ? rest() : 0.0;
  for (uint first = number; first < terms; first += chunk * stride) {
    const uint end = min(first + chunk * stride, terms);
    float partial = 0.0;
    for (uint i = first; i < end; i += stride) partial += term(i);
    sum += partial;
  }
  sum = sum_over_group(sum);
  if (lane != 0) return;
  if (!last) {
    write(group, sum);
    return;
  }
  const bool finite = is_finite(sum);
  const float norm = finite ? sqrt(sum) : uintBitsToFloat(0x7fc00000u);
  float scale = finite ? 1.0 : norm;
  if (finite && p.max_norm > 0.0 && norm + 1e-6 > p.max_norm) scale = p.max_norm / (norm + 1e-6);
  write(0, scale);
  write(1, norm);
}
