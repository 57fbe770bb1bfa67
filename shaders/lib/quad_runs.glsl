// For kernels on CPU-type devices that go through tensors by fours: a workgroup takes local_size * quads_each
// quads that follow each other, so that there are few workgroups.
#ifndef VITRINE_QUAD_RUNS_GLSL
#define VITRINE_QUAD_RUNS_GLSL

#include "index.glsl"

uint quad_of(uint i) { return (linear_group() * quads_each + i) * local_size + gl_LocalInvocationID.x; }

// The same quads as a loop's first and end, `quads` being those of the tensor, for steps of local_size: a tenth
// faster than leaving a loop over quad_of early.
uvec2 quad_run(uint quads) {
  const uint first = linear_group() * quads_each * local_size + gl_LocalInvocationID.x;
  return uvec2(first, min(quads, first + quads_each * local_size));
}

#endif
