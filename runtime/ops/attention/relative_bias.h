// Inside attention, its derivative and what computes its weights again: the bias of scores by where the
// query's and the key's patches lie (AttentionOptions::bias and bias_rows, shaders/lib/relative_bias.glsl).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/graph/op.h"
#include "runtime/ops/attention/attention.h"

namespace vitrine {

// Of a node, by its attributes.
bool has_relative_bias(const Attributes& attributes);
bool has_bias_rows(const Attributes& attributes);
void set_relative_bias(Attributes& attributes, const AttentionOptions& options);
// The table or the rows, of which there is one at most.
ValueId relative_bias_of(const AttentionOptions& options);
// Checks the grid against the tokens, and the table or the rows against both.
void require_relative_bias(InferContext& context, uint32_t input, uint64_t heads, uint64_t queries,
                           uint64_t keys);
// The shader's constants, all or those of the grid alone; and what is bound as its biases: the node's input
// of that number, if it has any.
void add_relative_grid(const LowerContext& context, Dispatch& dispatch);
void add_relative_bias(const LowerContext& context, Dispatch& dispatch);
Operand relative_bias_operand(const LowerContext& context, uint32_t input);
// The reason why a kernel that adds nothing to its scores can't run a node, if it can't.
std::optional<std::string> refuse_relative_bias(const LowerContext& context);

}  // namespace vitrine
