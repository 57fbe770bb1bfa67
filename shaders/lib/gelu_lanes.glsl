// GELU and its derivative without branches, in 32-bit floats, for kernels on CPU-type devices, which run both
// sides of a branch that lanes take differently. Relative errors against float64 over dense sweeps, with a
// correctly rounded exp2: gelu 5e-7 above -1.3, 2e-6 down to -6, 4e-6 down to -9 (the rounding of x^2); the
// derivative, but around its zero, the same. NaN and infinities become what activation.glsl says; a finite x
// whose square overflows has a density of 0.
#ifndef VITRINE_GELU_LANES_GLSL
#define VITRINE_GELU_LANES_GLSL

struct NormalTail {
  float upper;    // 1 - Phi(|x|)
  float density;  // sqrt(2 pi) phi(x)
};

// (1 - Phi(t)) / density is smooth and falls as 1 / t: a minimax polynomial in 1 / (1 + 0.29 t) up to t = 13.2,
// beyond which the density underflows; 5e-8 relative.
NormalTail normal_tail(float x) {
  const float e = exp2(x * x * -0.72134752044448170);
  const float u = 1.0 / (1.0 + 0.29 * abs(x)) - 0.6;
  float p = 3.904528174e-02;
  p = p * u - 4.560451604e-03;
  p = p * u - 1.071677715e-01;
  p = p * u - 3.116496041e-02;
  p = p * u + 2.841020522e-01;
  p = p * u + 5.971775105e-01;
  p = p * u + 6.652216650e-01;
  p = p * u + 4.943010683e-01;
  return NormalTail(e * (p * u + 1.510917120e-01), e);
}

float gelu_lanes(float x) {
  const float upper = normal_tail(x).upper;
  return x * (x < 0.0 ? upper : 1.0 - upper);
}

float gelu_gradient_lanes(float x) {
  const NormalTail tail = normal_tail(x);
  return (x < 0.0 ? tail.upper : 1.0 - tail.upper) + x * (0.39894228040143268 * tail.density);
}

#endif
