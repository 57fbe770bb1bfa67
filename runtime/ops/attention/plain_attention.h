// Multi-head attention step by step, for looking inside: it stores the scores and the weights.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"
#include "runtime/ops/attention/attention.h"

namespace vitrine {

extern const OpDef op_plain_attention;
std::vector<reference::OpCase> plain_attention_cases();

struct PlainAttentionResult {
  ValueId out;      // [B, N, heads * value_width], in the inputs' dtype
  ValueId scores;   // [B, heads, N, M] f32: scale * q . k, plus the bias
  ValueId weights;  // [B, heads, N, M] f32: the scores' softmax over the keys
};

// As attention(), with any width, but drops no weights; store_lse has no effect.
PlainAttentionResult plain_attention(Graph& graph, std::string name, ValueId q, ValueId k, ValueId v,
                                     const AttentionOptions& options);

}  // namespace vitrine
