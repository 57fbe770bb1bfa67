#include <cmath>
#include <numbers>

#include "runtime/check/reference.h"

namespace vitrine::reference {

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case Activation::gelu_tanh: {
      const double inner = std::sqrt(2 * std::numbers::inv_pi) * (x + 0.044715 * x * x * x);
      return 0.5 * x * (1 + std::tanh(inner));
    }
    case Activation::gelu_quick:
      return x / (1 + std::exp(-1.702 * x));
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
    case Activation::relu:
      return x < 0 ? 0 : x;
  }
  return x;
}

Values activate(Activation activation, const Values& x) {
  Values y;
  for (const double value : x) y.push_back(activate(activation, value));
  return y;
}

Values scale(const Values& x, double factor) {
  Values y;
  for (const double value : x) y.push_back(value * factor);
  return y;
}

Values add(const Values& a, const Values& b) {
  Values y;
  for (size_t i = 0; i < a.size(); ++i) y.push_back(a[i] + b[i]);
  return y;
}

Values multiply(const Values& a, const Values& b) {
  Values y;
  for (size_t i = 0; i < a.size(); ++i) y.push_back(a[i] * b[i]);
  return y;
}

Values gated_product(const Values& x, uint64_t half_width, Activation activation) {
  Values y;
  for (size_t row = 0; row < x.size(); row += 2 * half_width) {
    for (size_t i = 0; i < half_width; ++i) {
      y.push_back(activate(activation, x[row + i]) * x[row + half_width + i]);
    }
  }
  return y;
}

}  // namespace vitrine::reference
