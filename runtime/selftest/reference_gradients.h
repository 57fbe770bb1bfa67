// What the gradients of operators should be: naive loops in float64. Tensors are flat, row-major; dy is the
// gradient of a result, and what comes back that of an input.
#pragma once

#include <cstdint>

#include "runtime/selftest/reference.h"

namespace vitrine::reference {

double activation_gradient(Activation activation, double x);
Values activation_gradient(Activation activation, const Values& dy, const Values& x);
// Of rows of `width` elements.
Values sum_rows(const Values& x, uint64_t width);
// Matrices of `columns` columns that lie one after the other, with `rows` rows each.
Values transpose(const Values& x, uint64_t rows, uint64_t columns);
// y is the softmax's result.
Values softmax_gradient(const Values& dy, const Values& y, uint64_t width);
Values gated_product_gradient(const Values& dy, const Values& x, uint64_t half_width, Activation activation);

struct LayerNormGradient {
  Values dx, dgamma, dbeta;
};
LayerNormGradient layer_norm_gradient(const Values& dy, const Values& x, const Values& gamma, double eps);

}  // namespace vitrine::reference
