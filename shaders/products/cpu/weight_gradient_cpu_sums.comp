//! variant f32 needs=addresses bind=addresses access=rrww
// Adds what each part of the rows left of dw and db in weight_gradient_cpu_lanes.comp, one invocation an element.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#include "products/weight_gradient.h"
layout(local_size_x_id = 0) in;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Floats { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Sums { float v[]; };
layout(push_constant) uniform Push {
  Floats parts_w;
  Floats parts_b;
  Sums dw;
  Sums db;
  WeightGradientSumsParams p;
};

void main() {
  const uint i = gl_GlobalInvocationID.x;
  float sum = 0.0;
  if (i < p.weights) {
    for (uint part = 0; part < p.parts; ++part) sum += parts_w.v[part * p.weights + i];
    dw.v[i] = sum;
  } else if (i - p.weights < p.biases) {
    for (uint part = 0; part < p.parts; ++part) sum += parts_b.v[part * p.biases + i - p.weights];
    db.v[i - p.weights] = sum;
  }
}
