// One element's step of Adam. The including shader declares the parameters `p` and the constant decoupled.
#ifndef VITRINE_ADAM_GLSL
#define VITRINE_ADAM_GLSL

#include "nonfinite.glsl"

// What is the same for all elements.
struct AdamFactors {
  float rate;
  float unbias1;       // 1 / (1 - beta1^t)
  float unbias2_root;  // the square root of 1 / (1 - beta2^t)
};

void adam(uint i, AdamFactors f, float gradient, inout float param, inout float m, inout float v) {
  const float decay = i < p.decayed ? p.weight_decay * param : 0.0;
  if (!decoupled) gradient += decay;
  m = p.beta1 * m + p.rest1 * gradient;
  v = p.beta2 * v + p.rest2 * (gradient * gradient);
  const float direction = f.unbias1 * m / (nan_or(v, sqrt(v)) * f.unbias2_root + p.eps);
  param -= f.rate * (decoupled ? direction + decay : direction);
}

#endif
