// What a matrix product does to an accumulator before it is stored:
//   y = residual + scale * activation(accumulator + bias)
// with each part switched by a specialization constant. They take the ids 0 to 3; the including shader's
// own constants follow from 4. A part that is off is never read, so anything may be bound there.
//
// The including shader says how to reach the three buffers (all f32) before it includes this file:
//   EPILOGUE_BIAS(column), EPILOGUE_SCALE(column), EPILOGUE_RESIDUAL(at), `at` counting elements of the output.
// Where they are bound by fours it says EPILOGUE_BY_FOURS instead, and gives their blocks the members bias4, scale4 and
// residual4; then four columns from a multiple of four on have an epilogue4.
#ifndef VITRINE_EPILOGUE_GLSL
#define VITRINE_EPILOGUE_GLSL

#include "lib/activation.glsl"

layout(constant_id = 0) const uint epilogue_activation = VITRINE_ACTIVATION_NONE;
layout(constant_id = 1) const bool epilogue_has_bias = false;
layout(constant_id = 2) const bool epilogue_has_scale = false;
layout(constant_id = 3) const bool epilogue_has_residual = false;

#ifdef EPILOGUE_BY_FOURS
#define EPILOGUE_BIAS(column) bias4[(column) / 4][(column) % 4]
#define EPILOGUE_SCALE(column) scale4[(column) / 4][(column) % 4]
#define EPILOGUE_RESIDUAL(at) residual4[(at) / 4][(at) % 4]

// For callers that read what it takes before they wait for the accumulators.
vec4 bias4_of(uint column) { return epilogue_has_bias ? bias4[column / 4] : vec4(0.0); }
vec4 scale4_of(uint column) { return epilogue_has_scale ? scale4[column / 4] : vec4(1.0); }
vec4 residual4_of(uint at) { return epilogue_has_residual ? residual4[at / 4] : vec4(0.0); }
vec4 epilogue4(vec4 accumulators, vec4 bias, vec4 scale, vec4 residual) {
  vec4 y = accumulators;
  if (epilogue_has_bias) y += bias;
  y = vec4(activate(epilogue_activation, y.x), activate(epilogue_activation, y.y), activate(epilogue_activation, y.z),
           activate(epilogue_activation, y.w));
  if (epilogue_has_scale) y *= scale;
  if (epilogue_has_residual) y += residual;
  return y;
}

vec4 epilogue4(vec4 accumulators, uint column, uint at) {
  return epilogue4(accumulators, bias4_of(column), scale4_of(column), residual4_of(at));
}
#endif

float epilogue(float accumulator, uint column, uint at) {
  float y = accumulator;
  if (epilogue_has_bias) y += EPILOGUE_BIAS(column);
  y = activate(epilogue_activation, y);
  if (epilogue_has_scale) y *= EPILOGUE_SCALE(column);
  if (epilogue_has_residual) y += EPILOGUE_RESIDUAL(at);
  return y;
}

#endif
