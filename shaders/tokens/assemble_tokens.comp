//! variant f32 TX=float TY=float
//! variant f32_f16 TX=float TY=float16_t needs=storage16
//! variant f16 TX=float16_t TY=float16_t needs=storage16
//! variant f16_f32 TX=float16_t TY=float needs=storage16
// One workgroup writes one token of one image; what kind of token it is, is the same for the whole group.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "assemble_tokens.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 128;
layout(constant_id = 1) const bool has_class = true;
layout(constant_id = 2) const bool has_distillation = false;
layout(constant_id = 3) const bool has_registers = false;
layout(constant_id = 4) const bool has_positions = true;

layout(push_constant) uniform Push { AssembleTokensParams p; };
layout(set = 0, binding = 0) readonly buffer Patches { TX patches[]; };
layout(set = 0, binding = 1) readonly buffer ClassToken { float class_token[]; };
layout(set = 0, binding = 2) readonly buffer DistillationToken { float distillation_token[]; };
layout(set = 0, binding = 3) readonly buffer Registers { float registers[]; };
layout(set = 0, binding = 4) readonly buffer Positions { float positions[]; };
layout(set = 0, binding = 5) writeonly buffer Y { TY y[]; };

// The row of `positions` that belongs to a token, or none.
const uint none = 0xffffffffu;
uint position_of(uint token) {
  if (!has_positions || token < p.position_from) return none;
  if (p.position_shift_registers == 0) return token - p.position_from;
  if (token < p.first_register) return token - p.position_from;
  return token < p.first_patch ? none : token - p.position_from - p.registers;
}

float element(uint image, uint token, uint d) {
  if (token >= p.first_patch) {
    return load_float(patches[(image * p.patches + token - p.first_patch) * p.dims + d]);
  }
  if (has_registers && token >= p.first_register) return registers[(token - p.first_register) * p.dims + d];
  if (has_class && token == 0) return class_token[d];
  return has_distillation ? distillation_token[d] : 0.0;
}

void main() {
  const uint row = linear_group();
  if (row >= p.rows) return;
  const uint image = row / p.tokens, token = row % p.tokens;
  const uint position = position_of(token);
  for (uint d = gl_LocalInvocationID.x; d < p.dims; d += local_size) {
    float value = element(image, token, d);
    if (position != none) value += positions[position * p.dims + d];
    y[row * p.dims + d] = store_as(TY, value);
  }
}
