#include "train/recipes/random_draws.h"

#include <cmath>

#include "runtime/util/portable_math.h"

namespace vitrine {

double log_gamma_draw(double shape, UniformDraws& draws) {
  // Of a shape a below 1: one of shape a + 1 times u^(1/a).
  const double boost = shape < 1 ? portable_log(draws.next()) / shape : 0;
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal_quantile(draws.next()), u = draws.next(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root, log_v = portable_log(v);
    if (portable_log(u) < 0.5 * x * x + d - d * v + d * log_v) return portable_log(d) + log_v + boost;
  }
}

double beta_draw(double shape, UniformDraws& draws) {
  const double x = log_gamma_draw(shape, draws), y = log_gamma_draw(shape, draws);
  return 1 / (1 + portable_exp(y - x));
}

}  // namespace vitrine
