//! variant f32 ADDRESSES=0 T=uint TO_F32=uint
//! variant f16 ADDRESSES=0 T=uint16_t TO_F32=f32_from_f16 needs=storage16
//! variant f32_addresses ADDRESSES=1 T=uint TO_F32=uint needs=addresses,int64 bind=addresses access=rw
// The largest |x|, one number a workgroup. Without their signs, the bit patterns of floats are ordered as
// their values are, infinity above all numbers and NaN above infinity: an integer maximum needs no order
// and hides neither.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/half_bits.glsl"
#include "magnitude.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 128;

#if ADDRESSES
// Of more than a device can bind.
#include "lib/quads.glsl"
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer OutUints { uint at[]; };
layout(push_constant) uniform Push {
  Uints x;
  OutUints y;
  MagnitudeParams p;
};
uint bits(uint i) { return x.at[i]; }
void write(uint i, uint value) { y.at[i] = value; }
#else
layout(push_constant) uniform Push { MagnitudeParams p; };
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { uint y[]; };
uint bits(uint i) { return TO_F32(uint(x[i])); }
void write(uint i, uint value) { y[i] = value; }
#endif

shared uint found[local_size];

void main() {
  const uint group = linear_group();
  if (group >= p.groups) return;
  const uint lane = gl_LocalInvocationID.x;
  const uint stride = p.groups * local_size;
  uint largest = 0u;
  for (uint i = group * local_size + lane; i < p.count; i += stride) {
    largest = max(largest, bits(i) & 0x7fffffffu);
  }
  found[lane] = largest;
  barrier();
  for (uint half_size = local_size / 2; half_size > 0; half_size /= 2) {
    if (lane < half_size) found[lane] = max(found[lane], found[lane + half_size]);
    barrier();
  }
  if (lane == 0) write(group, found[0]);
}
