// What a matrix product does to an accumulator before it is stored:
//   y = residual + scale * activation(accumulator + bias)
// with each part switched by a specialization constant. They take the ids 0 to 3; the including shader's
// own constants follow from 4. A part that is off is never read, so anything may be bound there.
//
// The including shader says how to reach the three buffers (all f32) before it includes this file:
//   EPILOGUE_BIAS(column), EPILOGUE_SCALE(column), EPILOGUE_RESIDUAL(at), `at` counting elements of the output.
#ifndef VITRINE_EPILOGUE_GLSL
#define VITRINE_EPILOGUE_GLSL

#include "lib/activation.glsl"

layout(constant_id = 0) const uint epilogue_activation = VITRINE_ACTIVATION_NONE;
layout(constant_id = 1) const bool epilogue_has_bias = false;
layout(constant_id = 2) const bool epilogue_has_scale = false;
layout(constant_id = 3) const bool epilogue_has_residual = false;

float epilogue(float accumulator, uint column, uint at) {
  float y = accumulator;
  if (epilogue_has_bias) y += EPILOGUE_BIAS(column);
  y = activate(epilogue_activation, y);
  if (epilogue_has_scale) y *= EPILOGUE_SCALE(column);
  if (epilogue_has_residual) y += EPILOGUE_RESIDUAL(at);
  return y;
}

#endif
