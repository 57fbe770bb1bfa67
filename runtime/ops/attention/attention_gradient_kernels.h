// Inside attention_gradient: its inputs, outputs and kernels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ops/attention/attention_kernels.h"
#include "shaders/attention/cpu/attention_gradient_cpu_lanes.h"

namespace vitrine {

namespace attention_gradient_input {
// Behind q, k and v.
constexpr uint32_t out = 3, lse = 4, out_gradient = 5, step = 6;
}  // namespace attention_gradient_input

// Which output the gradients of q, k and v lie in.
std::array<uint32_t, 3> attention_gradient_outputs(const Attributes& attributes);

// Where the rows of q, k or v lie, and their gradient's likewise.
struct AttentionRows {
  uint32_t stride = 0, offset = 0;
};
AttentionRows attention_rows_of(const LowerContext& context, uint32_t input);

// Whether an input's rows, whose heads are `width` wide, start and end with whole 64-bit words in every head.
bool lies_in_words(const LowerContext& context, uint32_t input, AttentionRows rows, uint64_t width);

// Fills the outputs of which no kernel writes every column.
void clear_unread_columns(const LowerContext& context, Lowered& lowered);

std::optional<std::string> refuse_attention_gradient_tiled(const LowerContext& context);
Lowered lower_attention_gradient_tiled(const LowerContext& context);
std::vector<std::string> attention_gradient_tiled_configurations(const LowerContext& context);

// Those of `cpu_whole`, too.
shader::AttentionGradientLanesParams attention_gradient_lanes_params(const LowerContext& context);

std::optional<std::string> refuse_attention_gradient_lanes(const LowerContext& context);
Lowered lower_attention_gradient_lanes(const LowerContext& context);
std::vector<std::string> attention_gradient_lanes_configurations(const LowerContext& context);

std::optional<std::string> refuse_attention_gradient_whole(const LowerContext& context);
double prefer_attention_gradient_whole(const LowerContext& context);
Lowered lower_attention_gradient_whole(const LowerContext& context);
std::vector<std::string> attention_gradient_whole_configurations(const LowerContext& context);

}  // namespace vitrine
