// The activation functions, in 32-bit floats. GLSL has no erf, and its tanh may be imprecise or turn
// inf/inf into NaN for large arguments; these are built on exp, multiply and add alone. Errors against
// float64 over dense sweeps: erf 1e-7, tanh 1.4e-7 relative, with an exp that is correctly rounded;
// the 3+2|x| ulp that Vulkan allows exp add at most 7e-8.
//
// NaN in is NaN out: whatever the comparisons below make of it, the result is a product with x, or nan_or() of it.
// +-inf goes where IEEE arithmetic takes the formula: tanh(+-inf) = +-1, gelu(inf) = inf, and x * 0 makes
// gelu(-inf) and silu(-inf) NaN, as in PyTorch, so that an infinity upstream is never hidden.
#ifndef VITRINE_ACTIVATION_GLSL
#define VITRINE_ACTIVATION_GLSL

#include "activation.h"
#include "nonfinite.glsl"

// Below this |x| erf is x + x P(x^2), above it erfc is exp(R(|x|)): minimax polynomials.
const float erf_small_below = 0.9;
// From here on 1 - erfc rounds to 1, and x erfc(x) is below 1e-11.
const float erfc_zero_from = 5.0;

float erf_small_polynomial(float square) {
  float p = -6.111292875e-04;
  p = p * square + 5.016228535e-03;
  p = p * square - 2.678195702e-02;
  p = p * square + 1.128222996e-01;
  p = p * square - 3.761253245e-01;
  return p * square + 1.283791553e-01;
}

float erfc_large(float t) {
  if (t >= erfc_zero_from) return 0.0;
  float r = 1.310698139e-06;
  r = r * t - 3.959531880e-05;
  r = r * t + 5.427222030e-04;
  r = r * t - 4.510424711e-03;
  r = r * t + 2.573171332e-02;
  r = r * t - 1.089095627e-01;
  r = r * t - 6.330152417e-01;
  r = r * t - 1.129572776e+00;
  return exp(r * t + 1.663766241e-04);
}

// x Phi(x), from erfc(|x|/sqrt 2) so that the negative tail keeps its relative precision.
float gelu(float x) {
  const float t = abs(x) * 0.70710678118654752;
  const float half_erfc = 0.5 * (t < erf_small_below ? 1.0 - (t + t * erf_small_polynomial(t * t)) : erfc_large(t));
  return x * (x < 0.0 ? half_erfc : 1.0 - half_erfc);
}

float silu(float x) { return x / (1.0 + exp(-x)); }

float gelu_quick(float x) { return x / (1.0 + exp(-1.702 * x)); }

float tanh_precise(float x) {
  const float t = abs(x);
  if (t < 0.625) {
    const float square = x * x;
    float p = -5.717040356e-03;
    p = p * square + 2.065058272e-02;
    p = p * square - 5.374349653e-02;
    p = p * square + 1.333149127e-01;
    p = p * square - 3.333328392e-01;
    return x + x * square * p;
  }
  const float y = 1.0 - 2.0 / (exp(2.0 * t) + 1.0);
  return nan_or(x, x < 0.0 ? -y : y);
}

// 0.5 x (1 + tanh u) is x sigmoid(2u), which keeps its precision in the negative tail.
float gelu_tanh(float x) {
  const float u = 0.79788456080286536 * (x + 0.044715 * x * x * x);
  return x / (1.0 + exp(-2.0 * u));
}

float relu(float x) { return nan_or(x, x > 0.0 ? x : 0.0); }

// `kind` is a VITRINE_ACTIVATION_ number; as a specialization constant it leaves one branch.
float activate(uint kind, float x) {
  switch (kind) {
    case VITRINE_ACTIVATION_GELU: return gelu(x);
    case VITRINE_ACTIVATION_GELU_TANH: return gelu_tanh(x);
    case VITRINE_ACTIVATION_GELU_QUICK: return gelu_quick(x);
    case VITRINE_ACTIVATION_SILU: return silu(x);
    case VITRINE_ACTIVATION_TANH: return tanh_precise(x);
    case VITRINE_ACTIVATION_RELU: return relu(x);
    default: return x;
  }
}

#endif
