//! variant losses GRADIENT=0
//! variant gradient GRADIENT=1
// One workgroup takes one row of a student's logits x and of a teacher's z, both divided by the temperature:
//   losses    factor * the sum of softmax(z) (log(softmax(z)) - log(softmax(x)))
//   gradient  g factor (softmax(x) - softmax(z))
// A NaN or +inf in either row, or a row of -inf, makes them NaN.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "soft_distillation.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 128;
#include "lib/reduce.glsl"

layout(push_constant) uniform Push { SoftDistillationParams p; };
layout(set = 0, binding = 0) readonly buffer Student { float x[]; };
layout(set = 0, binding = 1) readonly buffer Teacher { float z[]; };
#if GRADIENT
layout(set = 0, binding = 2) readonly buffer LossGradients { float g[]; };
layout(set = 0, binding = 3) writeonly buffer Y { float y[]; };
#else
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
#endif

const uint chunk = 16;  // terms that are summed before they are added to the others

// A class's part of the divergence, q log(q / p) + p - q, for u = log(p / q): the last two add up to nothing over all
// classes, and without them the parts would cancel where p and q are alike. Then it is q (exp(u) - 1 - u).
float divergence_of(float student, float teacher, float u) {
  if (teacher == 0.0) return student;  // for a -inf, too
  if (abs(u) >= 0.5) return student - teacher - teacher * u;
  float series = 1.0 / 40320.0;
  series = series * u + 1.0 / 5040.0;
  series = series * u + 1.0 / 720.0;
  series = series * u + 1.0 / 120.0;
  series = series * u + 1.0 / 24.0;
  series = series * u + 1.0 / 6.0;
  series = series * u + 0.5;
  return teacher * u * u * series;
}

void main() {
  const uint row = linear_group();
  if (row >= p.rows) return;
  const uint base = row * p.classes;
  const uint lane = gl_LocalInvocationID.x;

  float highest_x = uintBitsToFloat(0xff800000u), highest_z = highest_x;  // -inf
  for (uint c = lane; c < p.classes; c += local_size) {
    highest_x = max(highest_x, x[base + c]);
    highest_z = max(highest_z, z[base + c]);
  }
  highest_x = max_over_group(highest_x);
  highest_z = max_over_group(highest_z);

  float sum_x = 0.0, sum_z = 0.0, distances = 0.0;
  for (uint first = lane; first < p.classes; first += chunk * local_size) {
    float chunk_x = 0.0, chunk_z = 0.0;
    const uint end = min(first + chunk * local_size, p.classes);
    for (uint c = first; c < end; c += local_size) {
      const float of_x = (highest_x - x[base + c]) * p.inverse_temperature;
      const float of_z = (highest_z - z[base + c]) * p.inverse_temperature;
      chunk_x += exp(-of_x);
      chunk_z += exp(-of_z);
      distances += of_x + of_z;
    }
    sum_x += chunk_x;
    sum_z += chunk_z;
  }
  sum_x = sum_over_group(nan_or(distances, sum_x));
  sum_z = sum_over_group(nan_or(distances, sum_z));

#if !GRADIENT
  const float between_sums = nan_or(sum_x, log(sum_x)) - nan_or(sum_z, log(sum_z));
  float divergence = 0.0;
#endif
  for (uint first = lane; first < p.classes; first += chunk * local_size) {
    float chunk_divergence = 0.0;
    const uint end = min(first + chunk * local_size, p.classes);
    for (uint c = first; c < end; c += local_size) {
      const float of_x = (highest_x - x[base + c]) * p.inverse_temperature;
      const float of_z = (highest_z - z[base + c]) * p.inverse_temperature;
      const float student = exp(-of_x) / sum_x, teacher = exp(-of_z) / sum_z;
#if GRADIENT
      // Each invocation writes the elements that it alone has read last: x and y may be the same memory.
      y[base + c] = g[row] * p.factor * (student - teacher);
#else
      chunk_divergence += divergence_of(student, teacher, of_z - of_x - between_sums);
#endif
    }
#if !GRADIENT
    divergence += chunk_divergence;
#endif
  }
#if !GRADIENT
  divergence = sum_over_group(divergence);
  if (lane == 0) y[row] = p.factor * nan_or(sum_x + sum_z, divergence);
#endif
}
