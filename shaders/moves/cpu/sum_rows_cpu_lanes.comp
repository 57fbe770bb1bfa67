//! variant f32 needs=addresses,int64,subgroup_control bind=addresses access=rrw
// sum_rows.comp for devices that run a workgroup's subgroups one after another on a CPU core. A workgroup is one
// subgroup, and its lanes' elements lie side by side: all lanes read them all and each keeps its own, which is one
// vector load to the driver (see lib/own.glsl). Eight sums take turns, so that none waits for itself and each
// is an eighth as long.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/own.glsl"
#include "moves/sum_rows.h"
layout(local_size_x_id = 0) in;                // lanes
layout(constant_id = 1) const uint lanes = 8;  // of a subgroup, which has exactly this size
layout(constant_id = 2) const bool of_products = false;
const uint unroll = 8;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Floats { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Sums { float v[]; };
layout(push_constant) uniform Push {
  Floats a;
  Floats b;  // of products
  Sums y;
  SumRowsParams p;
};

DEFINE_OWN_OF(Floats, float)

float own_at(Floats elements, uint first) { return own_of(Floats(uint64_t(elements) + 4ul * first), 0); }

float term(uint first) { return of_products ? own_at(a, first) * own_at(b, first) : own_at(a, first); }

void main() {
  const uint first = gl_WorkGroupID.x * lanes;
  const uint i = first + gl_SubgroupInvocationID;
  // Rows that every lane has; the last one may end among them.
  const uint whole = (p.count - min(first + lanes - 1, p.count - 1) + p.stride - 1) / p.stride;
  float sums[unroll];
  [[unroll]] for (uint u = 0; u < unroll; ++u) sums[u] = 0.0;
  uint at = first, row = 0;
  if (whole >= unroll) {
    do {
      float terms[unroll];
      [[unroll]] for (uint u = 0; u < unroll; ++u) terms[u] = term(at + u * p.stride);
      [[unroll]] for (uint u = 0; u < unroll; ++u) sums[u] += terms[u];
      at += unroll * p.stride;
      row += unroll;
    } while (row + unroll <= whole);
  }
  if (at < p.count) {
    do {
      const float last = term(at);
      sums[0] += at + gl_SubgroupInvocationID < p.count ? last : 0.0;
      at += p.stride;
    } while (at < p.count);
  }
  if (i >= p.stride) return;
  y.v[i] = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}
