#include <algorithm>
#include <cmath>

#include "runtime/check/reference.h"

namespace vitrine::reference {

Values layer_norm(const Values& x, const Values& gamma, const Values& beta, double eps) {
  const size_t width = gamma.size();
  Values y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < width; ++i) mean += x[row + i];
    mean = beta.empty() ? 0 : mean / static_cast<double>(width);
    for (size_t i = 0; i < width; ++i) variance += (x[row + i] - mean) * (x[row + i] - mean);
    variance /= static_cast<double>(width);
    for (size_t i = 0; i < width; ++i) {
      y[row + i] = (x[row + i] - mean) / std::sqrt(variance + eps) * gamma[i] + (beta.empty() ? 0 : beta[i]);
    }
  }
  return y;
}

Values softmax(const Values& x, uint64_t width) {
  Values y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    const double highest = *std::max_element(x.data() + row, x.data() + row + width);
    double sum = 0;
    for (size_t i = 0; i < width; ++i) sum += std::exp(x[row + i] - highest);
    for (size_t i = 0; i < width; ++i) y[row + i] = std::exp(x[row + i] - highest) / sum;
  }
  return y;
}

}  // namespace vitrine::reference
