//! variant f32_f32 LOADA=load_quad_f32 LOADB=load_quad_f32 STORE=store_quad_f32 needs=addresses,int64 bind=addresses access=rrw
//! variant f32_f16 LOADA=load_quad_f32 LOADB=load_quad_f16 STORE=store_quad_f32 needs=addresses,int64 bind=addresses access=rrw
//! variant f16_f32 LOADA=load_quad_f16 LOADB=load_quad_f32 STORE=store_quad_f32 needs=addresses,int64 bind=addresses access=rrw
//! variant f16_f16 LOADA=load_quad_f16 LOADB=load_quad_f16 STORE=store_quad_f16 needs=addresses,int64 bind=addresses access=rrw
// binary.comp for CPU-type devices: four elements at a time (shaders/lib/quads.glsl).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/quads.glsl"
#include "elementwise/binary.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 64;
layout(constant_id = 1) const uint function = VITRINE_BINARY_ADD;
layout(constant_id = 2) const uint period = 0;  // elements of B where it repeats, else 0
layout(constant_id = 3) const uint quads_each = 8;

layout(push_constant) uniform Push {
  InWords a;
  InWords b;
  OutWords y;
  BinaryParams p;
};
#include "lib/quad_runs.glsl"
#include "lib/binary.glsl"

void main() {
  for (uint i = 0; i < quads_each; ++i) {
    const uint quad = quad_of(i);
    if (quad >= p.count / 4) return;
    const vec4 left = LOADA(a, quad), right = LOADB(b, period == 0 ? quad : quad % (period / 4));
    STORE(y, quad, binary(left, right));
  }
}
