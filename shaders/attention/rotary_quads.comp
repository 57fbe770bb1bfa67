//! variant f32 V=vec4
//! variant f16 V=f16vec4 needs=storage16
// rotary.comp for four pairs an invocation, which are two vectors of the row.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "rotary.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint pairs = 32;
layout(constant_id = 2) const uint turned = 24;
layout(constant_id = 3) const uint heads = 36;
layout(constant_id = 4) const uint tokens = 201;
layout(constant_id = 5) const uint first = 5;
layout(constant_id = 6) const uint tables = 1;
layout(constant_id = 7) const bool halves = false;

layout(push_constant) uniform Push { RotaryParams p; };
layout(set = 0, binding = 0) readonly buffer X { V x[]; };
layout(set = 0, binding = 1) readonly buffer Table { vec4 table[]; };
layout(set = 0, binding = 2) writeonly buffer Y { V y[]; };
#include "rotary.glsl"

void main() {
  const RotaryPlace place = rotary_place(linear_invocation(), 4);
  if (place.row >= p.rows) return;
  const uint low = place.head * 2 * pairs / 4 + (halves ? place.pair : 2 * place.pair) / 4;
  const uint high = low + (halves ? pairs / 4 : 1);
  const uint from = place.row * (p.x_stride / 4), to = place.row * (heads * 2 * pairs / 4);
  const vec4 a = vec4(x[from + low]), b = vec4(x[from + high]);
  if (!place.turned) {
    y[to + low] = V(a);
    y[to + high] = V(b);
    return;
  }
  const vec4 c = table[place.angle / 4], s = p.sign * table[(place.angle + pairs) / 4];
  if (halves) {
    y[to + low] = V(a * c - b * s);
    y[to + high] = V(b * c + a * s);
  } else {
    const vec4 even = vec4(a.xz, b.xz), odd = vec4(a.yw, b.yw);
    const vec4 new_even = even * c - odd * s, new_odd = odd * c + even * s;
    y[to + low] = V(vec4(new_even.x, new_odd.x, new_even.y, new_odd.y));
    y[to + high] = V(vec4(new_even.z, new_odd.z, new_even.w, new_odd.w));
  }
}
