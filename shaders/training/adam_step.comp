//! variant f32
// One invocation an element.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "lib/step_state.h"
#include "adam_step.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool decoupled = false;
layout(constant_id = 2) const bool has_scale = false;

layout(push_constant) uniform Push { AdamStepParams p; };
#include "lib/adam.glsl"
layout(set = 0, binding = 0) readonly buffer Param { float param[]; };
layout(set = 0, binding = 1) readonly buffer Gradient { float gradient[]; };
layout(set = 0, binding = 2) readonly buffer M { float m[]; };
layout(set = 0, binding = 3) readonly buffer V { float v[]; };
layout(set = 0, binding = 4) readonly buffer Step { uint step_words[]; };
layout(set = 0, binding = 5) readonly buffer Scale { float scale[]; };
layout(set = 0, binding = 6) writeonly buffer ParamOut { float param_out[]; };
layout(set = 0, binding = 7) writeonly buffer MOut { float m_out[]; };
layout(set = 0, binding = 8) writeonly buffer VOut { float v_out[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const AdamFactors f = AdamFactors(p.rate_factor * uintBitsToFloat(step_words[VITRINE_STEP_RATE]),
                                    uintBitsToFloat(step_words[VITRINE_STEP_MOMENT1]),
                                    sqrt(uintBitsToFloat(step_words[VITRINE_STEP_MOMENT2])));
  float new_param = param[i], new_m = m[i], new_v = v[i];
  if (!has_scale || !is_nan(scale[0])) {
    adam(i, f, has_scale ? scale[0] * gradient[i] : gradient[i], new_param, new_m, new_v);
  }
  param_out[i] = new_param;
  m_out[i] = new_m;
  v_out[i] = new_v;
}
