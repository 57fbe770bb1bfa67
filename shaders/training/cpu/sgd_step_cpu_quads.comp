//! variant f32 needs=addresses,int64 bind=addresses access=rrrrrww
// Four elements an invocation, as adam_step_cpu_quads.comp.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "lib/quads.glsl"
#include "lib/step_state.h"
#include "training/sgd_step.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool has_momentum = false;
layout(constant_id = 2) const bool nesterov = false;
layout(constant_id = 3) const bool has_scale = false;

layout(push_constant) uniform Push {
  InWords param, gradient, velocity;
  Uints step_words;
  Floats scale;
  OutWords param_out, velocity_out;
  SgdStepParams p;
};
#include "lib/sgd.glsl"

void main() {
  const uint quad = linear_invocation();
  if (4 * quad >= p.count) return;
  const float rate = p.rate_factor * uintBitsToFloat(step_words.at[VITRINE_STEP_RATE]);
  const float factor = has_scale ? scale.at[0] : 1.0;
  const bool changes = !is_nan(factor);
  if (4 * quad + 4 <= p.count) {
    vec4 new_param = load_quad_f32(param, quad), new_velocity = vec4(0.0);
    if (has_momentum) new_velocity = load_quad_f32(velocity, quad);
    if (changes) {
      const vec4 g = factor * load_quad_f32(gradient, quad);
      [[unroll]] for (uint j = 0; j < 4; ++j) sgd(4 * quad + j, rate, g[j], new_param[j], new_velocity[j]);
    }
    store_quad_f32(param_out, quad, new_param);
    if (has_momentum) store_quad_f32(velocity_out, quad, new_velocity);
    return;
  }
  for (uint i = 4 * quad; i < p.count; ++i) {
    float new_param = Floats(param).at[i], new_velocity = 0.0;
    if (has_momentum) new_velocity = Floats(velocity).at[i];
    if (changes) sgd(i, rate, factor * Floats(gradient).at[i], new_param, new_velocity);
    OutFloats(param_out).at[i] = new_param;
    if (has_momentum) OutFloats(velocity_out).at[i] = new_velocity;
  }
}
