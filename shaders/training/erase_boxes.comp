//! variant f32
// Random erasing: one invocation an element, which is left as it is outside of its sample's boxes. Of boxes that
// overlap the last one counts.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "lib/normal.glsl"
#include "lib/philox.glsl"
#include "erase_boxes.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint height = 224;
layout(constant_id = 2) const uint width = 224;
layout(constant_id = 3) const uint sample_elements = 3 * 224 * 224;
layout(constant_id = 4) const uint boxes = 1;  // of a sample
layout(constant_id = 5) const uint fill = VITRINE_ERASE_CONST;

layout(push_constant) uniform Push { EraseBoxesParams p; };
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer Boxes { uint box[]; };
layout(set = 0, binding = 2) readonly buffer Step { uint words[]; };
layout(set = 0, binding = 3) writeonly buffer Y { float y[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint element = i % sample_elements, which = i / sample_elements;
  const uint row = element / width % height, column = element % width;
  uint in_box = boxes;
  for (uint n = 0; n < boxes; ++n) {
    const uint at = (which * boxes + n) * VITRINE_BOX_WORDS;
    if (row >= box[at + VITRINE_BOX_TOP] && row < box[at + VITRINE_BOX_BOTTOM] &&
        column >= box[at + VITRINE_BOX_LEFT] && column < box[at + VITRINE_BOX_RIGHT]) {
      in_box = n;
    }
  }
  float value = x[i];
  if (in_box < boxes) {
    value = 0.0;
    if (fill != VITRINE_ERASE_CONST) {
      const uint channels = sample_elements / (height * width);
      const uint draw = fill == VITRINE_ERASE_PIXEL ? element : in_box * channels + element / (height * width);
      const uvec2 key = uvec2(words[VITRINE_STEP_SEED_LOW], words[VITRINE_STEP_SEED_HIGH]);
      value = normal_from(philox(uvec4(draw / 4, which, p.stream, words[VITRINE_STEP_NUMBER]), key)[draw % 4]);
    }
  }
  y[i] = value;
}
