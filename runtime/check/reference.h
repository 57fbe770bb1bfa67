// What the operators should compute: naive loops in float64, in the order of the mathematics. Tensors
// are flat, row-major; inputs hold values that are already rounded to their storage type.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/activation.h"
#include "runtime/graph/tensor.h"

namespace vitrine::reference {

using Values = std::vector<double>;

// reference_norm.cpp
// Without a beta, RMSNorm.
Values layer_norm(const Values& x, const Values& gamma, const Values& beta, double eps);
Values softmax(const Values& x, uint64_t width);

// reference_elementwise.cpp
double activate(Activation activation, double x);
Values activate(Activation activation, const Values& x);
Values scale(const Values& x, double factor);
Values add(const Values& a, const Values& b);
Values multiply(const Values& a, const Values& b);
Values gated_product(const Values& x, uint64_t half_width, Activation activation);

// reference_tokens.cpp
// image [B,C,H,W], weight [D,C,ph,pw]; an empty bias is none.
Values patch_embed(const Values& image, const Shape& image_shape, const Values& weight,
                   const Shape& weight_shape, const Values& bias);
// Empty vectors are tokens and positions left out.
struct Tokens {
  Values class_token, distillation_token, registers, positions;
};
Values assemble_tokens(const Values& patches, const Shape& patches_shape, const Tokens& tokens);
Values pool(const Values& tokens, const Shape& shape, uint64_t first, uint64_t count);
// Of rows of `heads` heads, the first `turned` by the table's angles (runtime/ops/attention/rotary.h).
struct Turns {
  uint64_t width = 2, turned = 1, heads = 1;
  bool halves = false, back = false;
};
Values rotary(const Values& x, const Shape& shape, const Values& table, const Shape& table_shape,
              const Turns& turns);

// reference_move.cpp
// The value of `to` that is nearest, the even one of two: what storing as `to` gives.
double nearest(DType to, double value);
Values slice(const Values& x, const Shape& shape, int axis, uint64_t begin, uint64_t end);
Values concat(const std::vector<Values>& parts, const std::vector<Shape>& shapes, int axis);
Values gather(const Values& x, const Shape& shape, const Values& rows);

}  // namespace vitrine::reference
