//! variant f32 needs=addresses,int64 bind=addresses access=rrrw
// grouped_matmul.comp for devices that run a workgroup on a CPU core, where all groups together are small: one
// lane takes one row. The weights are read where they lie, at the same address by all lanes, which is nearly
// free. Rows move as 64-bit words.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/quads.glsl"
#include "products/grouped_matmul.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint groups = 2;
layout(constant_id = 2) const uint outputs = 4;  // of a group; even
layout(constant_id = 3) const uint depth = 4;    // of a group; even
layout(constant_id = 4) const bool has_bias = false;
layout(constant_id = 5) const bool turned = false;  // w is [g][k][n]
layout(constant_id = 6) const uint sets = 1;
// Without a loop, and a branch around stores only: for devices of which Capabilities::loops_gather holds.
layout(constant_id = 7) const bool straight = false;

layout(push_constant) uniform Push {
  InWords x;
  Floats w;
  Floats bias;
  OutWords y;
  GroupedMatmulParams p;
};

const uint slices = turned ? groups * sets : groups / sets;

vec2 pair_of(uint word) {
  const uvec2 pair = unpack32(x.at[word]);
  return vec2(uintBitsToFloat(pair.x), uintBitsToFloat(pair.y));
}

vec2 sums[outputs / 2];

void begin(uint group) {
  const uint first = group * outputs;
  [[unroll]] for (uint n = 0; n < outputs; n += 2) {
    sums[n / 2] = has_bias ? vec2(bias.at[first + n], bias.at[first + n + 1]) : vec2(0.0);
  }
}

void add_set(uint row, uint group, uint set) {
  const uint slice = turned ? set * groups + group : group % slices;
  float values[depth];
  [[unroll]] for (uint k = 0; k < depth; k += 2) {
    const vec2 pair = pair_of(((row * slices + slice) * depth + k) / 2);
    values[k] = pair.x;
    values[k + 1] = pair.y;
  }
  [[unroll]] for (uint n = 0; n < outputs; n += 2) {
    vec2 products = vec2(0.0);
    [[unroll]] for (uint k = 0; k < depth; ++k) {
      const uint at = turned ? (slice * depth + k) * outputs + n : (group * outputs + n) * depth + k;
      products += values[k] * vec2(w.at[at], w.at[at + (turned ? 1 : depth)]);
    }
    sums[n / 2] += products;
  }
}

void store(uint row, uint group) {
  [[unroll]] for (uint n = 0; n < outputs; n += 2) {
    y.at[((row * groups + group) * outputs + n) / 2] = pack64(floatBitsToUint(sums[n / 2]));
  }
}

void main() {
  const uint row = gl_GlobalInvocationID.x;
  const uint added_sets = turned ? sets : 1;
  if (straight) {
    const uint existing = min(row, p.rows - 1);
    [[unroll]] for (uint group = 0; group < groups; ++group) {
      begin(group);
      [[unroll]] for (uint set = 0; set < added_sets; ++set) add_set(existing, group, set);
      if (row < p.rows) store(row, group);
    }
    return;
  }
  if (row >= p.rows) return;
  for (uint group = 0; group < groups; ++group) {
    begin(group);
    for (uint set = 0; set < added_sets; ++set) add_set(row, group, set);
    store(row, group);
  }
}
