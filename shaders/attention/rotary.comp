//! variant f32 T=float
//! variant f16 T=float16_t needs=storage16
// One invocation a pair of columns.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "rotary.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint pairs = 32;      // of a head
layout(constant_id = 2) const uint turned = 24;     // heads of a row that are turned, from its beginning on
layout(constant_id = 3) const uint heads = 36;      // of a row of the result
layout(constant_id = 4) const uint tokens = 201;    // of a sample
layout(constant_id = 5) const uint first = 5;       // the first token that is turned
layout(constant_id = 6) const uint tables = 1;      // which the turned heads take by turns
layout(constant_id = 7) const bool halves = false;  // a pair is half a head apart, not side by side

layout(push_constant) uniform Push { RotaryParams p; };
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) readonly buffer Table { float table[]; };
layout(set = 0, binding = 2) writeonly buffer Y { T y[]; };
#include "rotary.glsl"

void main() {
  const RotaryPlace place = rotary_place(linear_invocation(), 1);
  if (place.row >= p.rows) return;
  const uint low = place.head * 2 * pairs + (halves ? place.pair : 2 * place.pair);
  const uint high = low + (halves ? pairs : 1);
  const uint from = place.row * p.x_stride, to = place.row * heads * 2 * pairs;
  const float a = load_float(x[from + low]), b = load_float(x[from + high]);
  if (place.turned) {
    const float c = table[place.angle], s = p.sign * table[place.angle + pairs];
    y[to + low] = store_as(T, a * c - b * s);
    y[to + high] = store_as(T, b * c + a * s);
  } else {
    y[to + low] = store_as(T, a);
    y[to + high] = store_as(T, b);
  }
}
