// The derivative of LayerNorm.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_layer_norm_gradient;
std::vector<reference::OpCase> layer_norm_gradient_cases();

// The gradients of what layer_norm was given. Those of the parameters are none unless they were asked for.
struct LayerNormGradients {
  ValueId dx, dgamma, dbeta;
};

// dy [.., width] is the gradient of what layer_norm made of x [.., width] and gamma [width]; each of the
// first two is f32 or f16. dx has the shape and dtype of x, and so has `residual`, which is added to it if
// given; the others are f32 [width]. Mean and deviation are computed again. With rms, that of RMSNorm, for
// which dbeta says nothing.
LayerNormGradients layer_norm_gradient(Graph& graph, const std::string& name, ValueId dy, ValueId x,
                                       ValueId gamma, double eps, bool parameters, ValueId residual = {},
                                       bool rms = false);

}  // namespace vitrine
