//! variant u32
// Which update this is, told by how many were made, and not by how many were tried: the host, which is ahead of the
// device, has written a pair of Adam's corrections for each number that there may be.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "lib/step_state.h"
#include "count_update.h"
layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { CountUpdateParams p; };
layout(set = 0, binding = 0) readonly buffer Step { uint step_words[]; };
layout(set = 0, binding = 1) readonly buffer Scale { float scale[]; };
layout(set = 0, binding = 2) readonly buffer Updates { uint updates[]; };
layout(set = 0, binding = 3) writeonly buffer StepOut { uint step_out[]; };
layout(set = 0, binding = 4) writeonly buffer UpdatesOut { uint updates_out[]; };

void main() {
  if (linear_invocation() != 0) return;
  const uint made = updates[0];
  const uint candidate = min(made - step_words[VITRINE_STEP_UPDATES], VITRINE_STEP_CANDIDATE_COUNT - 1);
  for (uint i = 0; i < p.words; ++i) step_out[i] = step_words[i];
  step_out[VITRINE_STEP_MOMENT1] = step_words[VITRINE_STEP_CANDIDATES + 2 * candidate];
  step_out[VITRINE_STEP_MOMENT2] = step_words[VITRINE_STEP_CANDIDATES + 2 * candidate + 1];
  updates_out[0] = is_nan(scale[0]) ? made : made + 1;
}
