// Rows or columns of f32 on their way to shared memory as f16. The shader says ROUNDED_FIRST_ID, the first of the five
// constants.
#ifndef VITRINE_ROUNDED_GLSL
#define VITRINE_ROUNDED_GLSL
#include "half_range.glsl"
#include "eight.glsl"

layout(constant_id = ROUNDED_FIRST_ID) const bool a_turned = false;       // A is [k][m]
layout(constant_id = ROUNDED_FIRST_ID + 1) const bool w_turned = false;   // W is [k][n]
layout(constant_id = ROUNDED_FIRST_ID + 2) const bool a_by_four = false;  // A's rows are read by four
layout(constant_id = ROUNDED_FIRST_ID + 3) const bool w_by_four = false;
layout(constant_id = ROUNDED_FIRST_ID + 4) const bool scaled = false;  // A is multiplied by what its largest value asks for

#endif
