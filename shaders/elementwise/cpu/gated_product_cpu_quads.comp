//! variant f32 LOAD=load_quad_f32 STORE=store_quad_f32 needs=addresses,int64 bind=addresses access=rw
//! variant f16 LOAD=load_quad_f16 STORE=store_quad_f16 needs=addresses,int64 bind=addresses access=rw
// gated_product.comp for CPU-type devices: four elements at a time (shaders/lib/quads.glsl).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/quads.glsl"
#include "lib/activation.glsl"
#include "elementwise/gated_product.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 64;
layout(constant_id = 1) const uint activation = VITRINE_ACTIVATION_SILU;
layout(constant_id = 2) const uint width = 4096;
layout(constant_id = 3) const uint quads_each = 8;

layout(push_constant) uniform Push {
  InWords x;
  OutWords y;
  GatedProductParams p;
};
#include "lib/quad_runs.glsl"

void main() {
  const uvec2 run = quad_run(p.count / 4);
  for (uint quad = run.x; quad < run.y; quad += local_size) {
    const uint gate = quad + quad / (width / 4) * (width / 4);  // row * 2 width + column
    vec4 gated = LOAD(x, gate);
    for (uint i = 0; i < 4; ++i) gated[i] = activate(activation, gated[i]);
    STORE(y, quad, gated * LOAD(x, gate + width / 4));
  }
}
