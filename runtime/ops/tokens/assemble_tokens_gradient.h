// The gradients of what a token sequence was assembled from, in one dispatch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_assemble_tokens_gradient;
std::vector<reference::OpCase> assemble_tokens_gradient_cases();

// How the sequence was assembled (see assemble_tokens), and which gradients are asked for.
struct TokenLayout {
  bool class_token = false, distillation_token = false;
  uint64_t registers = 0, positions = 0;
};
struct TokenGradientsWanted {
  bool patches = false, class_token = false, distillation_token = false, registers = false, positions = false;
};
// In the shapes of what they are the gradients of; none where not asked for.
struct TokenGradients {
  ValueId patches, class_token, distillation_token, registers, positions;
};

// gradient [B, tokens, D] f32: that of the sequence.
TokenGradients assemble_tokens_gradient(Graph& graph, std::string name, ValueId gradient,
                                        const TokenLayout& layout, const TokenGradientsWanted& wanted);

// OpDef::backward of assemble_tokens.
void differentiate_assemble_tokens(GradContext& context);

}  // namespace vitrine
