//! variant f32
// One invocation an element.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "lib/step_state.h"
#include "sgd_step.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool has_momentum = false;
layout(constant_id = 2) const bool nesterov = false;
layout(constant_id = 3) const bool has_scale = false;

layout(push_constant) uniform Push { SgdStepParams p; };
#include "lib/sgd.glsl"
layout(set = 0, binding = 0) readonly buffer Param { float param[]; };
layout(set = 0, binding = 1) readonly buffer Gradient { float gradient[]; };
layout(set = 0, binding = 2) readonly buffer Velocity { float velocity[]; };
layout(set = 0, binding = 3) readonly buffer Step { uint step_words[]; };
layout(set = 0, binding = 4) readonly buffer Scale { float scale[]; };
layout(set = 0, binding = 5) writeonly buffer ParamOut { float param_out[]; };
layout(set = 0, binding = 6) writeonly buffer VelocityOut { float velocity_out[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  float new_param = param[i], new_velocity = has_momentum ? velocity[i] : 0.0;
  if (!has_scale || !is_nan(scale[0])) {
    sgd(i, p.rate_factor * uintBitsToFloat(step_words[VITRINE_STEP_RATE]),
        has_scale ? scale[0] * gradient[i] : gradient[i], new_param, new_velocity);
  }
  param_out[i] = new_param;
  if (has_momentum) velocity_out[i] = new_velocity;
}
