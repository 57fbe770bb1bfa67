#include "runtime/check/reference_gradients.h"

#include <cmath>
#include <numbers>

namespace vitrine::reference {
namespace {

// The derivative of x sigmoid(u(x)), of which u and x u'(x) are given.
double gated(double u, double x_slope) {
  const double e = std::exp(-std::abs(u));
  return (u < 0 ? e : 1) / (1 + e) + x_slope * (e / ((1 + e) * (1 + e)));
}

}  // namespace

double activation_gradient(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      return 1;
    case Activation::gelu:
      return 0.5 * std::erfc(-x / std::numbers::sqrt2) +
             x * std::exp(-0.5 * x * x) * std::sqrt(0.5 * std::numbers::inv_pi);
    case Activation::gelu_tanh: {
      const double factor = 2 * std::sqrt(2 * std::numbers::inv_pi);
      return gated(factor * (x + 0.044715 * x * x * x), factor * (x + 3 * 0.044715 * x * x * x));
    }
    case Activation::gelu_quick:
      return gated(1.702 * x, 1.702 * x);
    case Activation::silu:
      return gated(x, x);
    case Activation::tanh:
      return 1 / (std::cosh(x) * std::cosh(x));
    case Activation::relu:
      return std::isnan(x) ? x : x > 0 ? 1 : 0;
  }
  return 1;
}

Values activation_gradient(Activation activation, const Values& dy, const Values& x) {
  Values dx;
  for (size_t i = 0; i < x.size(); ++i) dx.push_back(dy[i] * activation_gradient(activation, x[i]));
  return dx;
}

Values sum_rows(const Values& x, uint64_t width) {
  Values y(width);
  for (size_t i = 0; i < x.size(); ++i) y[i % width] += x[i];
  return y;
}

Values transpose(const Values& x, uint64_t rows, uint64_t columns) {
  Values y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t matrix = i / (rows * columns), row = i / columns % rows, column = i % columns;
    y[(matrix * columns + column) * rows + row] = x[i];
  }
  return y;
}

Values softmax_gradient(const Values& dy, const Values& y, uint64_t width) {
  Values dx(y.size());
  for (size_t row = 0; row < y.size(); row += width) {
    double sum = 0;
    for (size_t i = row; i < row + width; ++i) sum += dy[i] * y[i];
    for (size_t i = row; i < row + width; ++i) dx[i] = y[i] * (dy[i] - sum);
  }
  return dx;
}

Values gated_product_gradient(const Values& dy, const Values& x, uint64_t half_width, Activation activation) {
  Values dx(x.size());
  for (size_t row = 0; row < x.size(); row += 2 * half_width) {
    for (size_t i = 0; i < half_width; ++i) {
      const double gate = x[row + i], value = x[row + half_width + i], gradient = dy[row / 2 + i];
      dx[row + i] = gradient * value * activation_gradient(activation, gate);
      dx[row + half_width + i] = gradient * activate(activation, gate);
    }
  }
  return dx;
}

LayerNormGradient layer_norm_gradient(const Values& dy, const Values& x, const Values& gamma, double eps,
                                      bool rms) {
  const size_t width = gamma.size();
  const auto count = static_cast<double>(width);
  LayerNormGradient result{Values(x.size()), Values(width), Values(width)};
  for (size_t row = 0; row < x.size(); row += width) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < width && !rms; ++i) mean += x[row + i] / count;
    for (size_t i = 0; i < width; ++i) variance += (x[row + i] - mean) * (x[row + i] - mean) / count;
    const double inverse_deviation = 1 / std::sqrt(variance + eps);
    double sum = 0, dot = 0;  // of the normalized values' gradients, and of these times the values
    for (size_t i = 0; i < width; ++i) {
      const double normalized = (x[row + i] - mean) * inverse_deviation;
      if (!rms) sum += dy[row + i] * gamma[i];
      dot += dy[row + i] * gamma[i] * normalized;
      result.dgamma[i] += dy[row + i] * normalized;
      result.dbeta[i] += dy[row + i];
    }
    for (size_t i = 0; i < width; ++i) {
      const double normalized = (x[row + i] - mean) * inverse_deviation;
      result.dx[row + i] =
          inverse_deviation * (dy[row + i] * gamma[i] - sum / count - normalized * dot / count);
    }
  }
  return result;
}

}  // namespace vitrine::reference
