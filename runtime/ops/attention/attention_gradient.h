// The derivative of attention: the weights are computed again from the log-sum-exp, never stored.
#pragma once

#include <string>
#include <vector>

#include "runtime/ops/attention/attention.h"

namespace vitrine {

extern const OpDef op_attention_gradient;
std::vector<reference::OpCase> attention_gradient_cases();

// Of the values that attention read, with their shapes. Where two of q, k and v were one value in columns of
// their own, they are one here, too.
struct AttentionGradients {
  ValueId q, k, v;
};

// q, k, v and the options as attention was given them, its out and lse, and the gradient of out; all f32.
// What attention didn't read of its inputs' columns has the gradient 0.
AttentionGradients attention_gradient(Graph& graph, std::string name, ValueId q, ValueId k, ValueId v,
                                      ValueId out, ValueId lse, ValueId out_gradient,
                                      const AttentionOptions& options);
// The same, with a node's attributes; the step where they say that weights are dropped, the bias where they
// say that there is one.
AttentionGradients attention_gradient(Graph& graph, std::string name, ValueId q, ValueId k, ValueId v,
                                      ValueId out, ValueId lse, ValueId out_gradient,
                                      const Attributes& attributes, ValueId step = {}, ValueId bias = {});

}  // namespace vitrine
