//! variant losses GRADIENT=0
//! variant gradient GRADIENT=1
// One workgroup takes one row of logits x, each class a question of yes or no with a target t:
//   losses    factor * the sum of (1 - t) x - log(sigmoid(x))
//   gradient  g factor (sigmoid(x) - t)
// A label that no class has makes them NaN. So does a NaN in the row: its losses' sum has it, its gradient where it is.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "binary_cross_entropy.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 128;
layout(constant_id = 1) const bool two_labels = false;  // each row has another label, and its own label's share
layout(constant_id = 2) const bool binary = false;      // targets become 0 or 1
#include "lib/reduce.glsl"

layout(push_constant) uniform Push { BinaryCrossEntropyParams p; };
layout(set = 0, binding = 0) readonly buffer Logits { float x[]; };
layout(set = 0, binding = 1) readonly buffer Labels { uint labels[]; };
layout(set = 0, binding = 2) readonly buffer Others { uint others[]; };
layout(set = 0, binding = 3) readonly buffer Shares { float shares[]; };
#if GRADIENT
layout(set = 0, binding = 4) readonly buffer LossGradients { float g[]; };
layout(set = 0, binding = 5) writeonly buffer Y { float y[]; };
#else
layout(set = 0, binding = 4) writeonly buffer Y { float y[]; };
#endif

const uint chunk = 16;  // terms that are summed before they are added to the others

// log(1 + e) for e of 0 to 1, by the series of 2 atanh(e / (2 + e)): where e is small, 1 + e would lose it.
float log_one_plus(float e) {
  const float s = e / (2.0 + e), s2 = s * s;
  float series = 1.0 / 17.0;
  [[unroll]] for (int k = 15; k >= 1; k -= 2) series = series * s2 + 1.0 / float(k);
  return 2.0 * s * series;
}

void main() {
  const uint row = linear_group();
  if (row >= p.rows) return;
  const uint base = row * p.classes;
  const uint lane = gl_LocalInvocationID.x;
  const float nan = uintBitsToFloat(0x7fc00000u);
  const uint label = labels[row];
  const uint other = two_labels ? others[row] : label;
  const float share = two_labels ? shares[row] : 1.0;
  const bool known = label < p.classes && other < p.classes;
  const float spread = p.smoothing / float(p.classes), kept = 1.0 - p.smoothing;

  float sum = 0.0;
  for (uint first = lane; first < p.classes; first += chunk * local_size) {
    float chunk_sum = 0.0;
    const uint end = min(first + chunk * local_size, p.classes);
    for (uint c = first; c < end; c += local_size) {
      const float value = x[base + c];
      float target = spread;
      if (c == label) target += kept * share;
      if (two_labels && c == other) target += kept * (1.0 - share);
      if (binary) target = target > p.threshold ? 1.0 : 0.0;
      const float e = exp(-abs(value));
#if GRADIENT
      // Each invocation writes the elements that it alone has read: x and y may be the same memory.
      const float sigmoid = nan_or(value, (value >= 0.0 ? 1.0 : e) / (1.0 + e));
      y[base + c] = known ? g[row] * p.factor * (sigmoid - target) : nan;
#else
      // Below 0 (1 - target) x - x is written as -target x: the difference would keep a rounding of x, of every class alike.
      const float linear = value >= 0.0 ? (1.0 - target) * value : -(target * value);
      chunk_sum += nan_or(value, linear + log_one_plus(e));
#endif
    }
    sum += chunk_sum;
  }
#if !GRADIENT
  sum = sum_over_group(sum);
  if (lane == 0) y[row] = known ? p.factor * sum : nan;
#endif
}
