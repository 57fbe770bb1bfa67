// For kernels on CPU-type devices that go through tensors by fours: a workgroup takes local_size * quads_each
// quads that follow each other, so that there are few workgroups.
#ifndef VITRINE_QUAD_RUNS_GLSL
#define VITRINE_QUAD_RUNS_GLSL

#include "index.glsl"

uint quad_of(uint i) { return (linear_group() * quads_each + i) * local_size + gl_LocalInvocationID.x; }

#endif
