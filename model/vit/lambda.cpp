#include "model/vit/lambda.h"

#include <cmath>

namespace vitrine {
namespace {

double product_of(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

}  // namespace

double first_lambda(uint64_t block) { return 0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(block)); }

double lambda_of(std::span<const float> q1, std::span<const float> k1, std::span<const float> q2,
                 std::span<const float> k2, uint64_t block) {
  return std::exp(product_of(q1, k1)) - std::exp(product_of(q2, k2)) + first_lambda(block);
}

}  // namespace vitrine
