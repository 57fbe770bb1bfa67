// Numbers of workgroups that were spread over x and y (spread_groups in runtime/ops/lowering.h), because
// a device may take no more than 65 535 of them in one dimension.
#ifndef VITRINE_INDEX_GLSL
#define VITRINE_INDEX_GLSL

uint linear_group() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }

// The number of this invocation among all, for shaders with one invocation an element. Up to one row of
// groups runs past the last element: callers compare before use. A macro, because a function that names
// gl_WorkGroupSize before the shader has declared its local size would see a size of 1.
#define linear_invocation() (linear_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x)

#endif
