//! variant f32
// Each patch's score in the first three components, from 0 to 255 between the smallest and the largest one of
// all patches, as red, green and blue; one workgroup. A component's sign is the one that puts the score which
// is farthest from zero above it. A component that there is not is an even grey.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "principal_colors.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 64;
layout(constant_id = 1) const bool of_width = false;  // the vectors are directions, else they are the scores
#include "lib/reduce.glsl"

layout(push_constant) uniform Push { PrincipalColorsParams p; };
layout(set = 0, binding = 0) readonly buffer Columns { float columns[]; };  // [width, rows], with of_width
layout(set = 0, binding = 1) readonly buffer Vectors { float v[]; };
layout(set = 0, binding = 2) readonly buffer State { float state[]; };
layout(set = 0, binding = 3) buffer Scores { vec4 scores[]; };
layout(set = 0, binding = 4) writeonly buffer Pixels { uint pixels[]; };

const uint count = VITRINE_PRINCIPAL_VECTORS;
const uint broken_color = 0xffff00ffu;  // magenta
const float grey = 128.0;

vec3 vector_at(uint i) { return vec3(v[i * count], v[i * count + 1], v[i * count + 2]); }

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const float status = state[VITRINE_PRINCIPAL_STATUS];
  const float infinity = uintBitsToFloat(0x7f800000u);
  vec3 low = vec3(infinity), high = vec3(-infinity);
  for (uint row = lane; row < p.rows; row += local_size) {
    vec3 score = vec3(0.0);
    if (of_width) {
      for (uint i = 0; i < p.width; ++i) score += columns[i * p.rows + row] * vector_at(i);
    } else {
      score = vector_at(row);
    }
    low = min(low, score);
    high = max(high, score);
    scores[row] = vec4(score, 0.0);  // the same invocation reads it
  }
  bvec3 present;
  for (uint j = 0; j < 3; ++j) {
    low[j] = -max_over_group(-low[j]);
    high[j] = max_over_group(high[j]);
    present[j] = status < VITRINE_PRINCIPAL_UNIFORM && state[j] > 1e-6 * state[0] && high[j] > low[j];
  }
  for (uint row = lane; row < p.rows; row += local_size) {
    const vec3 score = scores[row].xyz;
    uint pixel = 0xff000000u;
    for (uint j = 0; j < 3; ++j) {
      const float above = high[j] >= -low[j] ? score[j] - low[j] : high[j] - score[j];
      const float byte = present[j] ? above / (high[j] - low[j]) * 255.0 : grey;
      pixel |= uint(byte + 0.5) << (8 * j);
    }
    pixels[row] = status == VITRINE_PRINCIPAL_BROKEN ? broken_color : pixel;
  }
}
