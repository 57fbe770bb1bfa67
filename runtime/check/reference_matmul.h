// What matrix products and attention should compute: naive loops in float64. Tensors are flat, row-major.
#pragma once

#include <cstdint>
#include <functional>

#include "runtime/check/reference.h"

namespace vitrine::reference {

// reference_matmul.cpp
// Empty vectors are parts left out.
struct Epilogue {
  Values bias = {}, scale = {}, residual = {};
  Activation activation = Activation::none;
};
// x [m, k], weight [n, k].
Values matmul(const Values& x, const Values& weight, uint64_t m, uint64_t n, uint64_t k,
              const Epilogue& epilogue);
// x [rows, groups * k], weight [groups, n, k], bias [groups, n] or empty.
Values grouped_matmul(const Values& x, const Values& weight, const Values& bias, uint64_t groups, uint64_t n,
                      uint64_t k);

// reference_attention.cpp
// A tensor [batch, tokens, width] of which a head reads head_width elements from offset + head * head_width
// on.
struct Heads {
  const Values& values;
  uint64_t tokens = 0, width = 0, offset = 0, head_width = 0;
  uint64_t index(uint64_t batch, uint64_t token, uint64_t head, uint64_t element) const {
    return (batch * tokens + token) * width + offset + head * head_width + element;
  }
  double at(uint64_t batch, uint64_t token, uint64_t head, uint64_t element) const {
    return values[index(batch, token, head, element)];
  }
};
struct Attention {
  Values out;              // [batch, queries, heads * value width]
  Values scores, weights;  // [batch, heads, queries, keys]
  Values lse;              // [batch, heads, queries]
};
// What a weight is multiplied by before it takes a value: of row (batch * heads + head) * queries + query,
// for a key. None: 1.
using WeightFactor = std::function<double(uint64_t row, uint64_t key)>;
// Whether a query takes part in a key at all. None: in all.
using Sees = std::function<bool(uint64_t query, uint64_t key)>;
// What is added to a score. None: 0.
using ScoreBias = std::function<double(uint64_t batch, uint64_t head, uint64_t query, uint64_t key)>;
Attention attention(const Heads& q, const Heads& k, const Heads& v, uint64_t batch, uint64_t heads,
                    double scale, const WeightFactor& factor = {}, const Sees& sees = {},
                    const ScoreBias& bias = {});
// The gradients of the tensors that q, k and v are in, 0 where no head reads; and of each score.
struct AttentionGradients {
  Values q, k, v;
  Values scores;  // [batch, heads, queries, keys]
};
AttentionGradients attention_gradient(const Heads& q, const Heads& k, const Heads& v, uint64_t batch,
                                      uint64_t heads, double scale, const Values& out_gradient,
                                      const WeightFactor& factor = {}, const ScoreBias& bias = {});

// Biases by where patches lie, seen from each other (AttentionOptions::bias): the rows of the table, the one
// for a query and a key, and a table as what is added to scores.
struct RelativeGrid {
  uint64_t height = 0, width = 0, first = 0;
  uint64_t tokens() const { return first + height * width; }
  uint64_t rows() const;
  uint64_t row(uint64_t query, uint64_t key) const;
};
ScoreBias relative_bias(const RelativeGrid& grid, const Values& table, uint64_t heads);
// Or of rows [batch, heads, tokens, height + width] (AttentionOptions::bias_rows).
ScoreBias bias_rows(const RelativeGrid& grid, const Values& rows, uint64_t heads);
// The gradient of the table, from those of the scores.
Values relative_bias_gradient(const RelativeGrid& grid, const Values& scores, uint64_t batch, uint64_t heads);

}  // namespace vitrine::reference
