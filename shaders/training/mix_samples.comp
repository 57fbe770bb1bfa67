//! variant f32
// Mixup and cutmix: one invocation an element. Inside of its sample's box it is the partner's, outside a weighted
// sum of both, with the rounding of two products and a sum. A partner that there isn't makes NaN.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "mix_samples.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint height = 224;
layout(constant_id = 2) const uint width = 224;
layout(constant_id = 3) const uint sample_elements = 3 * 224 * 224;

layout(push_constant) uniform Push { MixSamplesParams p; };
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer Mixing { uint mixing[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint element = i % sample_elements, words = i / sample_elements * VITRINE_MIX_WORDS;
  const uint row = element / width % height, column = element % width;
  const uint partner = mixing[words + VITRINE_MIX_PARTNER];
  const float other_weight = uintBitsToFloat(mixing[words + VITRINE_MIX_OTHER]);
  const bool inside = row >= mixing[words + VITRINE_MIX_TOP] && row < mixing[words + VITRINE_MIX_BOTTOM] &&
                      column >= mixing[words + VITRINE_MIX_LEFT] && column < mixing[words + VITRINE_MIX_RIGHT];
  float value = x[i];
  if (inside || other_weight != 0.0) {
    const float other =
        partner < p.samples ? x[partner * sample_elements + element] : uintBitsToFloat(0x7fc00000u);
    precise const float own_part = value * uintBitsToFloat(mixing[words + VITRINE_MIX_OWN]);
    precise const float other_part = other * other_weight;
    precise const float mixed = own_part + other_part;
    value = inside ? other : mixed;
  }
  y[i] = value;
}
