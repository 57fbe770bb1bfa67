//! variant f32_f32 TA=float TB=float TY=float
//! variant f32_f16 TA=float TB=float16_t TY=float needs=storage16
//! variant f16_f32 TA=float16_t TB=float TY=float needs=storage16
//! variant f16_f16 TA=float16_t TB=float16_t TY=float16_t needs=storage16
// One invocation an element. A variant is named after the dtypes of its two inputs. B may be shorter than A
// and repeats then.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "binary.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint function = VITRINE_BINARY_ADD;
layout(constant_id = 2) const uint period = 0;  // elements of B where it repeats, else 0

layout(push_constant) uniform Push { BinaryParams p; };
#include "lib/binary.glsl"
layout(set = 0, binding = 0) readonly buffer A { TA a[]; };
layout(set = 0, binding = 1) readonly buffer B { TB b[]; };
layout(set = 0, binding = 2) writeonly buffer Y { TY y[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const float left = load_float(a[i]), right = load_float(b[period == 0 ? i : i % period]);
  y[i] = store_as(TY, binary(left, right));
}
