// What the gradients of operators should be: naive loops in float64. Tensors are flat, row-major; dy is the
// gradient of a result, and what comes back that of an input.
#pragma once

#include <cstdint>

#include "runtime/check/reference.h"

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
LayerNormGradient layer_norm_gradient(const Values& dy, const Values& x, const Values& gamma, double eps,
                                      bool rms = false);

// reference_unfold.cpp: how the operators that move data look from behind.
// x with `axis` made `size` long, zeros around it.
Values pad(const Values& x, const Shape& shape, int axis, uint64_t begin, uint64_t size);
// dy [B, dims] of the mean of `count` of `tokens` from `first` on.
Values pool_gradient(const Values& dy, uint64_t dims, uint64_t tokens, uint64_t first, uint64_t count);
// image [B, C, H, W] and rows of patches [B, P, C * height * width].
Values unfold(const Values& image, const Shape& shape, uint64_t height, uint64_t width);
Values fold(const Values& rows, const Shape& image_shape, uint64_t height, uint64_t width);
// dy [rows, groups * n] and x [rows, groups * k] give [groups, n, k].
Values weight_gradient(const Values& dy, const Values& x, uint64_t groups, uint64_t n, uint64_t k,
                       uint64_t rows);
// dy [B, tokens, D]; how many tokens of each kind there are.
struct TokenCounts {
  bool class_token = false, distillation_token = false;
  uint64_t registers = 0, positions = 0;
};
struct TokenGradients {
  Values patches, class_token, distillation_token, registers, positions;
};
TokenGradients assemble_tokens_gradient(const Values& dy, const Shape& shape, const TokenCounts& counts);

}  // namespace vitrine::reference
