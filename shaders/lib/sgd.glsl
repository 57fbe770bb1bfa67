// One element's step of stochastic gradient descent. The including shader declares the parameters `p` and
// the constants has_momentum and nesterov.
#ifndef VITRINE_SGD_GLSL
#define VITRINE_SGD_GLSL

void sgd(uint i, float rate, float gradient, inout float param, inout float velocity) {
  if (i < p.decayed) gradient += p.weight_decay * param;
  if (has_momentum) {
    velocity = p.momentum * velocity + gradient;
    gradient = nesterov ? gradient + p.momentum * velocity : velocity;
  }
  param -= rate * gradient;
}

#endif
