//! variant losses GRADIENT=0 needs=addresses,int64 bind=addresses access=rrw
//! variant gradient GRADIENT=1 needs=addresses,int64 bind=addresses access=rrrw
// cross_entropy.comp for devices that run a workgroup on a CPU core: one lane takes one row, so there is
// nothing to reduce between lanes. The number of classes is a constant, as in softmax_cpu_lanes.comp.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/nonfinite.glsl"
#include "lib/quads.glsl"
#include "training/cross_entropy.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint classes = 1000;

layout(push_constant) uniform Push {
  Floats x;
  Uints labels;
#if GRADIENT
  Floats g;
#endif
  OutFloats y;
  CrossEntropyParams p;
};

const uint block = 16;
const uint whole_blocks = classes / block;

float highest, sum = 0.0, distances = 0.0;

void look_at(uint from, uint count) {
  float block_sum = 0.0, block_distances = 0.0;
  [[unroll]] for (uint i = 0; i < count; ++i) {
    const float distance = highest - x.at[from + i];
    block_sum += exp(-distance);
    block_distances += distance;
  }
  sum += block_sum;
  distances += block_distances;
}

void main() {
  const uint row = gl_GlobalInvocationID.x;
  if (row >= p.rows) return;
  const uint base = row * classes;
  const uint label = labels.at[row];
  const float nan = uintBitsToFloat(0x7fc00000u);
  const bool known = label < classes;

  highest = uintBitsToFloat(0xff800000u);  // -inf
  [[dont_unroll]] for (uint b = 0; b < whole_blocks; ++b) {
    [[unroll]] for (uint i = 0; i < block; ++i) highest = max(highest, x.at[base + b * block + i]);
  }
  [[unroll]] for (uint c = whole_blocks * block; c < classes; ++c) highest = max(highest, x.at[base + c]);

  [[dont_unroll]] for (uint b = 0; b < whole_blocks; ++b) look_at(base + b * block, block);
  look_at(base + whole_blocks * block, classes - whole_blocks * block);
  sum = nan_or(distances, sum);

#if GRADIENT
  const float gradient = known ? g.at[row] : nan;
  const float share = p.smoothing / float(classes), factor = 1.0 / sum;
  for (uint c = 0; c < classes; ++c) {
    const float target = (c == label ? 1.0 - p.smoothing : 0.0) + share;
    y.at[base + c] = gradient * (exp(x.at[base + c] - highest) * factor - target);
  }
#else
  float loss = nan;
  if (known) {
    loss = nan_or(sum, log(sum)) + (1.0 - p.smoothing) * (highest - x.at[base + label]);
    if (p.smoothing > 0.0) loss += p.smoothing * (distances / float(classes));
  }
  y.at[row] = loss;
#endif
}
