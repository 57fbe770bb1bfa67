// The gradient of a linear layer's weight and bias.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_weight_gradient;
std::vector<reference::OpCase> weight_gradient_cases();

struct WeightGradientOptions {
  uint64_t groups = 0;  // as grouped_matmul has them; 0: none, and the results have no such dimension
  uint64_t sets = 1;    // how many groups share a slice of x
  bool bias = false;    // whether the bias's gradient is asked for
};

struct WeightGradient {
  ValueId weight, bias;
};

// dy [.., G*N] and x [.., G/sets*K], f32 with as many rows: the sum over all rows of dy's outer product with
// x, [G, N, K] f32, and of dy itself, [G, N], in one dispatch. It is made for matrices with many more rows
// than elements; of a large one, two transposed operands and a matrix product give the gradient faster.
WeightGradient weight_gradient(Graph& graph, std::string name, ValueId dy, ValueId x,
                               const WeightGradientOptions& options = {});

struct LinearGradientOptions {
  bool bias = false;       // whether the bias's gradient is asked for
  bool rounded = false;    // as MatmulOptions has it, where the way is a matrix product
  ValueId magnitude = {};  // of dy, where `rounded`
};
// The same for [N, K], in whichever of the two ways suits the sizes, and in x's dtype. Without an x only the
// bias's gradient is asked for.
WeightGradient linear_gradients(Graph& graph, const std::string& name, ValueId dy, ValueId x,
                                const LinearGradientOptions& options);

}  // namespace vitrine
