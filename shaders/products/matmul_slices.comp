//! variant f32 OUT=float
//! variant f16 OUT=float16_t needs=storage16
// The second dispatch of a product whose K was cut into slices: C = epilogue(sum of the slices' products).
// An invocation adds one element's partial sums, the first slice first, so that the result has the same bits
// in every run whichever slice was finished first.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "matmul_slices.h"

layout(push_constant) uniform Push { MatmulSlicesParams p; };
layout(set = 0, binding = 0) readonly buffer Partial { float partial[]; };  // [slices][rows][n]
layout(set = 0, binding = 1) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 2) readonly buffer Scale { float scale[]; };
layout(set = 0, binding = 3) readonly buffer Residual { float residual[]; };
layout(set = 0, binding = 4) writeonly buffer C { OUT c[]; };

#define EPILOGUE_BIAS(column) bias[column]
#define EPILOGUE_SCALE(column) scale[column]
#define EPILOGUE_RESIDUAL(at) residual[at]
#include "lib/epilogue.glsl"

layout(local_size_x_id = 4) in;
layout(constant_id = 5) const uint n = 768;
layout(constant_id = 6) const uint slices = 2;

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  float sum = partial[i];
  [[unroll]] for (uint s = 1; s < slices; ++s) sum += partial[s * p.count + i];
  c[i] = store_as(OUT, epilogue(sum, i % n, i));
}
