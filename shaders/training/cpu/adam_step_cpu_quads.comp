//! variant f32 needs=addresses,int64 bind=addresses access=rrrrrrwww
// Four elements an invocation, for devices that run a workgroup on a CPU core. The last invocation takes
// what is left of a quad one by one.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/index.glsl"
#include "lib/quads.glsl"
#include "lib/step_state.h"
#include "training/adam_step.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool decoupled = false;
layout(constant_id = 2) const bool has_scale = false;

layout(push_constant) uniform Push {
  InWords param, gradient, m, v;
  Uints step_words;
  Floats scale;
  OutWords param_out, m_out, v_out;
  AdamStepParams p;
};
#include "lib/adam.glsl"

void main() {
  const uint quad = linear_invocation();
  if (4 * quad >= p.count) return;
  const AdamFactors f = AdamFactors(p.rate_factor * uintBitsToFloat(step_words.at[VITRINE_STEP_RATE]),
                                    uintBitsToFloat(step_words.at[VITRINE_STEP_MOMENT1]),
                                    sqrt(uintBitsToFloat(step_words.at[VITRINE_STEP_MOMENT2])));
  const float factor = has_scale ? scale.at[0] : 1.0;
  const bool changes = !is_nan(factor);
  if (4 * quad + 4 <= p.count) {
    vec4 new_param = load_quad_f32(param, quad), new_m = load_quad_f32(m, quad), new_v = load_quad_f32(v, quad);
    if (changes) {
      const vec4 g = factor * load_quad_f32(gradient, quad);
      [[unroll]] for (uint j = 0; j < 4; ++j) adam(4 * quad + j, f, g[j], new_param[j], new_m[j], new_v[j]);
    }
    store_quad_f32(param_out, quad, new_param);
    store_quad_f32(m_out, quad, new_m);
    store_quad_f32(v_out, quad, new_v);
    return;
  }
  for (uint i = 4 * quad; i < p.count; ++i) {
    float new_param = Floats(param).at[i], new_m = Floats(m).at[i], new_v = Floats(v).at[i];
    if (changes) adam(i, f, factor * Floats(gradient).at[i], new_param, new_m, new_v);
    OutFloats(param_out).at[i] = new_param;
    OutFloats(m_out).at[i] = new_m;
    OutFloats(v_out).at[i] = new_v;
  }
}
