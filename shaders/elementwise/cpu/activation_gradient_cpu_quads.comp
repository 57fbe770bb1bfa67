//! variant f32 LOAD=load_quad_f32 STORE=store_quad_f32 needs=addresses,int64 bind=addresses access=rrw
//! variant f16 LOAD=load_quad_f16 STORE=store_quad_f16 needs=addresses,int64 bind=addresses access=rrw
// activation_gradient.comp for CPU-type devices: four elements at a time (shaders/lib/quads.glsl).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/quads.glsl"
#include "lib/activation_gradient.glsl"
#include "lib/gelu_lanes.glsl"
#include "elementwise/activation_gradient.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 64;
layout(constant_id = 1) const uint activation = VITRINE_ACTIVATION_GELU;
layout(constant_id = 2) const uint quads_each = 8;

layout(push_constant) uniform Push {
  InWords dy;
  InWords x;
  OutWords dx;
  ActivationGradientParams p;
};
#include "lib/quad_runs.glsl"

float slope(float value) {
  return activation == VITRINE_ACTIVATION_GELU ? gelu_gradient_lanes(value) : activation_gradient(activation, value);
}

void main() {
  const uvec2 run = quad_run(p.count / 4);
  for (uint quad = run.x; quad < run.y; quad += local_size) {
    const vec4 v = LOAD(x, quad);
    STORE(dx, quad, LOAD(dy, quad) * vec4(slope(v.x), slope(v.y), slope(v.z), slope(v.w)));
  }
}
