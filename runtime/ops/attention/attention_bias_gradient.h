// The derivative of attention's relative bias: the weights are computed again from the log-sum-exp.
#pragma once

#include <string>
#include <vector>

#include "runtime/ops/attention/attention.h"

namespace vitrine {

extern const OpDef op_attention_bias_gradient;
std::vector<reference::OpCase> attention_bias_gradient_cases();

// As attention_gradient() takes them, of an attention with a relative bias. Gives the gradient of its table,
// [rows, heads] f32: of each number the sum over all images and all pairs of tokens whose score it was added
// to.
ValueId attention_bias_gradient(Graph& graph, std::string name, ValueId q, ValueId k, ValueId v, ValueId out,
                                ValueId lse, ValueId out_gradient, const AttentionOptions& options);
// The same, with a node's attributes.
ValueId attention_bias_gradient(Graph& graph, std::string name, ValueId q, ValueId k, ValueId v, ValueId out,
                                ValueId lse, ValueId out_gradient, const Attributes& attributes, ValueId step,
                                ValueId bias);

}  // namespace vitrine
