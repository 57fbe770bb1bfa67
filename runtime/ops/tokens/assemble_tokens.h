// Makes a Vision Transformer's token sequence: class token, distillation token, register tokens and
// patches in this order, with their positions added.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_assemble_tokens;
std::vector<reference::OpCase> assemble_tokens_cases();

// Places of a node's inputs.
namespace token_places {
inline constexpr uint32_t patches_input = 0, class_input = 1, distillation_input = 2, registers_input = 3,
                          positions_input = 4, input_count = 5;
}

// Each may be none. All are f32.
struct TokenOptions {
  ValueId class_token{};         // [D]
  ValueId distillation_token{};  // [D]
  ValueId registers{};           // [R, D]
  // [n, D]. With P patches, n = P gives the patches positions; n = P + the class and distillation
  // tokens all tokens but the registers; n = all tokens, every one.
  ValueId positions{};
  std::optional<DType> out = std::nullopt;  // f32 when left out
};

// patches [B, P, D] f32 or f16. Gives [B, tokens, D].
ValueId assemble_tokens(Graph& graph, std::string name, ValueId patches, const TokenOptions& options);

}  // namespace vitrine
