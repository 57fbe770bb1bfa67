//! variant f32_f16 T_FROM=uint T_TO=uint16_t TO_F32=uint FROM_F32=f16_from_f32 needs=storage16
//! variant f32_bf16 T_FROM=uint T_TO=uint16_t TO_F32=uint FROM_F32=bf16_from_f32 needs=storage16
//! variant f16_f32 T_FROM=uint16_t T_TO=uint TO_F32=f32_from_f16 FROM_F32=uint needs=storage16
//! variant f16_bf16 T_FROM=uint16_t T_TO=uint16_t TO_F32=f32_from_f16 FROM_F32=bf16_from_f32 needs=storage16
//! variant bf16_f32 T_FROM=uint16_t T_TO=uint TO_F32=f32_from_bf16 FROM_F32=uint needs=storage16
//! variant bf16_f16 T_FROM=uint16_t T_TO=uint16_t TO_F32=f32_from_bf16 FROM_F32=f16_from_f32 needs=storage16
// One invocation an element. Every conversion goes through f32's bit pattern, which holds f16 and bf16
// exactly, so it rounds once.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/half_bits.glsl"
#include "convert.h"
layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { ConvertParams p; };
layout(set = 0, binding = 0) readonly buffer X { T_FROM x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { T_TO y[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  y[i] = store_as(T_TO, FROM_F32(TO_F32(uint(x[i]))));
}
