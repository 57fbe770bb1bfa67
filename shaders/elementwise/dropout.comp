//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
// Zeros at random, the rest times 1 / (1 - rate); a NaN is never dropped, as it isn't where x is multiplied with
// the mask. An invocation takes four neighbours: a call of the generator gives four words.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "lib/philox.glsl"
#include "dropout.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint group = 1;  // elements that share a draw

layout(push_constant) uniform Push { DropoutParams p; };
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) readonly buffer Step { uint words[]; };
layout(set = 0, binding = 2) writeonly buffer Y { T y[]; };

void main() {
  const uint first = linear_invocation() * 4;
  if (first >= p.count) return;
  const MaskSource source = mask_source(words, p.stream, p.threshold);
  uint block = first / group / 4;
  bvec4 kept = kept_four(source, block, 0);
  [[unroll]] for (uint n = 0; n < 4; ++n) {
    const uint i = first + n;
    const uint draw = i / group;
    // With a draw an element, the four are one block.
    if (group > 1 && draw / 4 != block) {
      block = draw / 4;
      kept = kept_four(source, block, 0);
    }
    if (i < p.count) {
      const float value = load_float(x[i]);
      y[i] = store_as(T, kept[draw % 4] ? value * p.factor : nan_or(value, 0.0));
    }
  }
}
