// The derivatives of the activation functions, in 32-bit floats, with the errors and the treatment of NaN that
// activation.glsl describes. Where a sigmoid's complement is asked for, it is not one minus the sigmoid, which
// would have no correct digit left where the derivative is small.
#ifndef VITRINE_ACTIVATION_GRADIENT_GLSL
#define VITRINE_ACTIVATION_GRADIENT_GLSL

#include "activation.glsl"

// Phi(x) + x phi(x)
float gelu_gradient(float x) {
  const float t = abs(x) * 0.70710678118654752;
  const float half_erfc = 0.5 * (t < erf_small_below ? 1.0 - (t + t * erf_small_polynomial(t * t)) : erfc_large(t));
  return (x < 0.0 ? half_erfc : 1.0 - half_erfc) + x * 0.39894228040143268 * exp(-0.5 * x * x);
}

// The derivative of x sigmoid(u(x)), of which u and x u'(x) are given.
float gated_gradient(float u, float x_slope) {
  const float e = exp(-abs(u));
  const float inverse = 1.0 / (1.0 + e);
  return (u < 0.0 ? e : 1.0) * inverse + x_slope * (e * inverse * inverse);
}

float gelu_tanh_gradient(float x) {
  const float square = x * x;
  return gated_gradient(1.5957691216057307 * x * (1.0 + 0.044715 * square),
                        1.5957691216057307 * x * (1.0 + 0.134145 * square));
}

float tanh_gradient(float x) {
  const float e = exp(-2.0 * abs(x));
  const float inverse = 1.0 / (1.0 + e);
  return nan_or(x, 4.0 * e * inverse * inverse);
}

// `kind` is a VITRINE_ACTIVATION_ number; as a specialization constant it leaves one branch.
float activation_gradient(uint kind, float x) {
  // Far out all are constant, and the formulas would multiply an overflow by zero. Infinity and NaN take them.
  if (abs(x) > 128.0 && is_finite(x)) return x > 0.0 && kind != VITRINE_ACTIVATION_TANH ? 1.0 : 0.0;
  switch (kind) {
    case VITRINE_ACTIVATION_GELU: return gelu_gradient(x);
    case VITRINE_ACTIVATION_GELU_TANH: return gelu_tanh_gradient(x);
    case VITRINE_ACTIVATION_GELU_QUICK: return gated_gradient(1.702 * x, 1.702 * x);
    case VITRINE_ACTIVATION_SILU: return gated_gradient(x, x);
    case VITRINE_ACTIVATION_TANH: return tanh_gradient(x);
    case VITRINE_ACTIVATION_RELU: return nan_or(x, x > 0.0 ? 1.0 : 0.0);
    default: return 1.0;
  }
}

#endif
