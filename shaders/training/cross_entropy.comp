//! variant losses GRADIENT=0
//! variant gradient GRADIENT=1
// One workgroup takes one row of logits x: its maximum, then the sum of exp(x - maximum), then
//   losses    log(sum) + (1 - smoothing) (maximum - x[label]) + smoothing * mean(maximum - x)
//   gradient  g (softmax(x) - (1 - smoothing) [c = label] - smoothing / classes)
// A label that no class has makes them NaN. So does a NaN or +inf in the row, through the
// distances maximum - x, and a row of -inf.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "cross_entropy.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 128;
#include "lib/reduce.glsl"

layout(push_constant) uniform Push { CrossEntropyParams p; };
layout(set = 0, binding = 0) readonly buffer Logits { float x[]; };
layout(set = 0, binding = 1) readonly buffer Labels { uint labels[]; };
#if GRADIENT
layout(set = 0, binding = 2) readonly buffer LossGradients { float g[]; };
layout(set = 0, binding = 3) writeonly buffer Y { float y[]; };
#else
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
#endif

const uint chunk = 16;  // terms that are summed before they are added to the others

void main() {
  const uint row = linear_group();
  if (row >= p.rows) return;
  const uint base = row * p.classes;
  const uint lane = gl_LocalInvocationID.x;
  const uint label = labels[row];
  const float nan = uintBitsToFloat(0x7fc00000u);
  const bool known = label < p.classes;

  float highest = uintBitsToFloat(0xff800000u);  // -inf
  for (uint c = lane; c < p.classes; c += local_size) highest = max(highest, x[base + c]);
  highest = max_over_group(highest);

  float sum = 0.0, distances = 0.0;
  for (uint first = lane; first < p.classes; first += chunk * local_size) {
    float chunk_sum = 0.0, chunk_distances = 0.0;
    const uint end = min(first + chunk * local_size, p.classes);
    for (uint c = first; c < end; c += local_size) {
      const float distance = highest - x[base + c];
      chunk_sum += exp(-distance);
      chunk_distances += distance;
    }
    sum += chunk_sum;
    distances += chunk_distances;
  }
  sum = sum_over_group(nan_or(distances, sum));

#if GRADIENT
  const float gradient = g[row];
  const float share = p.smoothing / float(p.classes);
  // Each invocation writes the elements that it alone has read last: x and y may be the same memory.
  for (uint c = lane; c < p.classes; c += local_size) {
    const float target = (c == label ? 1.0 - p.smoothing : 0.0) + share;
    y[base + c] = known ? gradient * (exp(x[base + c] - highest) / sum - target) : nan;
  }
#else
  float loss = nan_or(sum, log(sum));
  if (p.smoothing > 0.0) loss += p.smoothing * (sum_over_group(distances) / float(p.classes));
  if (lane != 0) return;
  if (known) loss += (1.0 - p.smoothing) * (highest - x[base + label]);
  y[row] = known ? loss : nan;
#endif
}
