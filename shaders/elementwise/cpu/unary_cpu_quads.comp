//! variant f32 LOAD=load_quad_f32 STORE=store_quad_f32 needs=addresses,int64 bind=addresses access=rw
//! variant f16 LOAD=load_quad_f16 STORE=store_quad_f16 needs=addresses,int64 bind=addresses access=rw
// unary.comp for CPU-type devices: four elements at a time (shaders/lib/quads.glsl).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/quads.glsl"
#include "lib/activation.glsl"
#include "lib/gelu_lanes.glsl"
#include "elementwise/unary.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 64;
layout(constant_id = 1) const uint function = VITRINE_ACTIVATION_GELU;
layout(constant_id = 2) const uint quads_each = 8;

layout(push_constant) uniform Push {
  InWords x;
  OutWords y;
  UnaryParams p;
};
#include "lib/quad_runs.glsl"

float apply(float value) {
  if (function == VITRINE_UNARY_SCALE) return value * p.factor;
  return function == VITRINE_ACTIVATION_GELU ? gelu_lanes(value) : activate(function, value);
}

void main() {
  const uvec2 run = quad_run(p.count / 4);
  for (uint quad = run.x; quad < run.y; quad += local_size) {
    const vec4 v = LOAD(x, quad);
    STORE(y, quad, vec4(apply(v.x), apply(v.y), apply(v.z), apply(v.w)));
  }
}
