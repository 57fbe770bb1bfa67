#include "runtime/check/reference_matmul.h"

namespace vitrine::reference {

Values matmul(const Values& x, const Values& weight, uint64_t m, uint64_t n, uint64_t k,
              const Epilogue& epilogue) {
  Values y(m * n);
  for (uint64_t row = 0; row < m; ++row) {
    for (uint64_t column = 0; column < n; ++column) {
      double sum = 0;
      for (uint64_t i = 0; i < k; ++i) sum += x[row * k + i] * weight[column * k + i];
      if (!epilogue.bias.empty()) sum += epilogue.bias[column];
      sum = activate(epilogue.activation, sum);
      if (!epilogue.scale.empty()) sum *= epilogue.scale[column];
      if (!epilogue.residual.empty()) sum += epilogue.residual[row * n + column];
      y[row * n + column] = sum;
    }
  }
  return y;
}

Values grouped_matmul(const Values& x, const Values& weight, const Values& bias, uint64_t groups, uint64_t n,
                      uint64_t k) {
  const uint64_t rows = x.size() / (groups * k);
  Values y(rows * groups * n);
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t group = 0; group < groups; ++group) {
      for (uint64_t column = 0; column < n; ++column) {
        double sum = bias.empty() ? 0 : bias[group * n + column];
        for (uint64_t i = 0; i < k; ++i) {
          sum += x[(row * groups + group) * k + i] * weight[(group * n + column) * k + i];
        }
        y[(row * groups + group) * n + column] = sum;
      }
    }
  }
  return y;
}

}  // namespace vitrine::reference
