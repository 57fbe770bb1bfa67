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

vec4 epilogue4(vec4 accumulators, uint column, uint at) {
  vec4 y = accumulators;
  if (epilogue_has_bias) y += bias4[column / 4];
  y = vec4(activate(epilogue_activation, y.x), activate(epilogue_activation, y.y), activate(epilogue_activation, y.z),
           activate(epilogue_activation, y.w));
  if (epilogue_has_scale) y *= scale4[column / 4];
  if (epilogue_has_residual) y += residual4[at / 4];
  return y;
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
