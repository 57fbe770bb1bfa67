//! variant f32 OUT=float OUT4=vec4
//! variant f16 OUT=float16_t OUT4=f16vec4 needs=storage16
//! variant rotary_f32 ROTARY=1 OUT2=vec2
//! variant rotary_f16 ROTARY=1 OUT2=f16vec2 needs=storage16
// The second dispatch of a product whose K was cut into slices: C = epilogue(sum of the slices' products).
// An invocation adds the partial sums of four elements, or of one where rows are no multiple of four, the first slice
// first, so that the result has the same bits in every run whichever slice was finished first.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require  // to index f16vec4; no arithmetic
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/tile.glsl"
#include "matmul_slices.h"

layout(push_constant) uniform Push { MatmulSlicesParams p; };
layout(set = 0, binding = 0) readonly buffer Partial { vec4 partial4[]; };  // [slices][rows][n]
layout(set = 0, binding = 1) readonly buffer Bias { vec4 bias4[]; };
layout(set = 0, binding = 2) readonly buffer Scale { vec4 scale4[]; };
layout(set = 0, binding = 3) readonly buffer Residual { vec4 residual4[]; };
#ifdef ROTARY
layout(set = 0, binding = 4) writeonly buffer C { OUT2 c2[]; };
layout(set = 0, binding = 5) readonly buffer Angles { vec2 angles[]; };
#else
layout(set = 0, binding = 4) writeonly buffer C { OUT4 c[]; };
#endif

#define EPILOGUE_BY_FOURS
#include "lib/epilogue.glsl"

layout(local_size_x_id = 4) in;
layout(constant_id = 5) const uint n = 768;
layout(constant_id = 6) const uint slices = 2;
layout(constant_id = 7) const bool by_four = true;  // n is a multiple of four

#ifdef ROTARY
#define ROTARY_FIRST_ID 8
#include "lib/rotary_epilogue.glsl"
#endif

void main() {
  const uint i = linear_invocation() * (by_four ? 4 : 1);
  if (i >= p.count) return;
#ifdef ROTARY
  // The slices lie as C does, whose columns an invocation takes as a rotary kernel has them.
  const uint row = i / n, column = i % n;
  const uint low = row * n + rotary_source(column), high = low + rotary_apart(column);
  vec4 sums = vec4(two_of(partial4, low), two_of(partial4, high));
  [[unroll]] for (uint s = 1; s < slices; ++s) {
    sums += vec4(two_of(partial4, s * p.count + low), two_of(partial4, s * p.count + high));
  }
  store_rotary4(sums, rotary_bias4(column), row, column, n);
#else
  if (by_four) {
    vec4 sums = partial4[i / 4];
    [[unroll]] for (uint s = 1; s < slices; ++s) sums += partial4[(s * p.count + i) / 4];
    c[i / 4] = OUT4(epilogue4(sums, i % n, i));
  } else {
    float sum = element_of(partial4, i);
    [[unroll]] for (uint s = 1; s < slices; ++s) sum += element_of(partial4, s * p.count + i);
    c[i / 4][i % 4] = store_as(OUT, epilogue(sum, i % n, i));
  }
#endif
}
