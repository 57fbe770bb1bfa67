//! variant f32 TX=float TY=float
//! variant f32_f16 TX=float TY=float16_t needs=storage16
//! variant f16 TX=float16_t TY=float16_t needs=storage16
//! variant f16_f32 TX=float16_t TY=float needs=storage16
// The last of group_norm's three dispatches: one invocation an element, whose group's mean and deviation are known.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/activation.glsl"
#include "group_norm.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint channels = 64;
layout(constant_id = 2) const uint group_width = 2;
layout(constant_id = 3) const uint activation = VITRINE_ACTIVATION_NONE;

layout(push_constant) uniform Push { GroupNormParams p; };
layout(set = 0, binding = 0) readonly buffer X { TX x[]; };
layout(set = 0, binding = 1) readonly buffer Gamma { float gamma[]; };
layout(set = 0, binding = 2) readonly buffer Beta { float beta[]; };
layout(set = 0, binding = 3) readonly buffer Moments { vec2 moments[]; };
layout(set = 0, binding = 4) writeonly buffer Y { TY y[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint channel = i % channels, image = i / channels / p.pixels;
  const vec2 found = moments[image * (channels / group_width) + channel / group_width];
  const float normalized = (load_float(x[i]) - found.x) * found.y;
  y[i] = store_as(TY, activate(activation, normalized * gamma[channel] + beta[channel]));
}
