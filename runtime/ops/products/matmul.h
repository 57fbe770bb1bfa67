// A linear layer: x W^T, with everything that commonly follows it fused in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/activation.h"
#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_matmul;
std::vector<reference::OpCase> matmul_cases();
std::vector<reference::Sample> matmul_sample(const reference::LoneNode& node);

// What follows the product, in this order: + bias, activation, * scale, + residual. All three are f32.
struct MatmulOptions {
  ValueId bias = {};  // [N]
  Activation activation = Activation::none;
  ValueId scale = {};             // [N]
  ValueId residual = {};          // the result's shape
  std::optional<DType> out = {};  // x's dtype when left out; may be f32 for f16 inputs
  // Of f32 operands: a kernel that multiplies f16 may be taken, which rounds them on their way. What it
  // rounds x to keeps f16's eleven bits down to 2^-28 of `magnitude`, a [1] that holds the largest |x|;
  // without it x is rounded as it is, and what f16 has no room for becomes infinite.
  bool rounded = false;
  ValueId magnitude = {};
};

// x [.., K] and weight [N, K], both f32 or both f16, give residual + scale * act(x W^T + bias) as [.., N].
// Sums are f32 whatever the storage. The weight may be a constant or computed.
ValueId matmul(Graph& graph, std::string name, ValueId x, ValueId weight, const MatmulOptions& options = {});

}  // namespace vitrine
