// A sum or maximum over a workgroup, in a fixed order and with no assumption on subgroups. The including
// shader declares `local_size`, a power of two, as its specialization constant 0.
#ifndef VITRINE_REDUCE_GLSL
#define VITRINE_REDUCE_GLSL

shared float reduction[local_size];

// All invocations of the group must call; each gets the result.
float sum_over_group(float value) {
  const uint lane = gl_LocalInvocationID.x;
  reduction[lane] = value;
  barrier();
  for (uint half_size = local_size / 2; half_size > 0; half_size /= 2) {
    if (lane < half_size) reduction[lane] += reduction[lane + half_size];
    barrier();
  }
  const float result = reduction[0];
  barrier();  // before the next reduction overwrites it
  return result;
}

// A NaN may or may not win against a number.
float max_over_group(float value) {
  const uint lane = gl_LocalInvocationID.x;
  reduction[lane] = value;
  barrier();
  for (uint half_size = local_size / 2; half_size > 0; half_size /= 2) {
    if (lane < half_size) reduction[lane] = max(reduction[lane], reduction[lane + half_size]);
    barrier();
  }
  const float result = reduction[0];
  barrier();
  return result;
}

#endif
