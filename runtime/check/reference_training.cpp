#include "runtime/check/reference_training.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace vitrine::reference {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Values cross_entropy(const Values& logits, const Values& labels, double smoothing) {
  const size_t classes = logits.size() / labels.size();
  Values losses;
  for (size_t row = 0; row < labels.size(); ++row) {
    const double* x = logits.data() + row * classes;
    const double highest = *std::max_element(x, x + classes);
    double sum = 0, all = 0;
    for (size_t c = 0; c < classes; ++c) sum += std::exp(x[c] - highest);
    const auto loss_of = [&](size_t c) { return highest + std::log(sum) - x[c]; };
    if (smoothing > 0) {
      for (size_t c = 0; c < classes; ++c) all += loss_of(c);
    }
    const auto label = static_cast<size_t>(labels[row]);
    losses.push_back(label < classes
                         ? (1 - smoothing) * loss_of(label) +
                               (smoothing > 0 ? smoothing * all / static_cast<double>(classes) : 0)
                         : nan);
  }
  return losses;
}

Values cross_entropy_gradient(const Values& gradient, const Values& logits, const Values& labels,
                              double smoothing) {
  const size_t classes = logits.size() / labels.size();
  Values y = softmax(logits, classes);
  for (size_t row = 0; row < labels.size(); ++row) {
    const auto label = static_cast<size_t>(labels[row]);
    for (size_t c = 0; c < classes; ++c) {
      double& value = y[row * classes + c];
      value -= smoothing / static_cast<double>(classes) + (c == label ? 1 - smoothing : 0);
      value *= label < classes ? gradient[row] : nan;
    }
  }
  return y;
}

ClipScale clip_scale(const Values& gradients, double max_norm) {
  double sum = 0;
  for (const double value : gradients) sum += value * value;
  const double norm = std::sqrt(sum);
  if (!std::isfinite(norm)) return {nan, nan};
  const bool limits = max_norm > 0 && std::isfinite(max_norm);
  return {limits ? std::min(1.0, max_norm / (norm + 1e-6)) : 1, norm};
}

void Sgd::step(Values& param, const Values& gradient, Values& velocity) const {
  for (size_t i = 0; i < param.size(); ++i) {
    const double g = gradient[i] + (i < decayed ? weight_decay * param[i] : 0);
    velocity[i] = momentum * velocity[i] + g;
    param[i] -= rate * (nesterov ? g + momentum * velocity[i] : velocity[i]);
  }
}

void Adam::step(uint64_t t, Values& param, const Values& gradient, Values& m, Values& v) const {
  const double correction1 = 1 - std::pow(beta1, t), correction2 = 1 - std::pow(beta2, t);
  for (size_t i = 0; i < param.size(); ++i) {
    const double decay = i < decayed ? weight_decay : 0;
    const double g = gradient[i] + (decoupled ? 0 : decay * param[i]);
    if (decoupled) param[i] *= 1 - rate * decay;
    m[i] = beta1 * m[i] + (1 - beta1) * g;
    v[i] = beta2 * v[i] + (1 - beta2) * g * g;
    param[i] -= rate / correction1 * m[i] / (std::sqrt(v[i]) / std::sqrt(correction2) + eps);
  }
}

}  // namespace vitrine::reference
