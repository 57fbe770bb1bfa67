// Inside attention_gradient: its inputs, outputs and kernels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ops/attention/attention_kernels.h"
#include "shaders/attention/attention_gradient.h"
#include "shaders/attention/cpu/attention_gradient_cpu_lanes.h"

namespace vitrine {

namespace attention_gradient_input {
// Behind q, k and v.
constexpr uint32_t out = 3, lse = 4, out_gradient = 5, step = 6, bias = 7;
}  // namespace attention_gradient_input

// Checks the inputs, which are the same of attention_bias_gradient.
void infer_attention_gradient_inputs(InferContext& context);
void infer_attention_gradient(InferContext& context);
// Of scores again, the gradients of the weights, and those of q, k and v.
double attention_gradient_flops(const LowerContext& context);

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

// ---- tiled and coopmat, which run twice: over queries and over keys ---------------------------------

// Appends what computes the deltas, and returns where they lie: two floats an image, head and query, lse and
// delta.
Operand append_query_statistics(const LowerContext& context, Lowered& lowered);

// Rows of a query q and the gradient of its result; or of a key k and v.
struct AttentionSide {
  uint64_t tokens = 0;
  uint32_t keys_at = 0, values_at = 0;  // which inputs
  AttentionRows keys, values;
};
AttentionSide query_side(const LowerContext& context);
AttentionSide key_side(const LowerContext& context);
// Whether every row of every head on both sides begins at a multiple of four elements and is whole fours.
bool sides_by_four(const AttentionSizes& sizes, const AttentionSide& own, const AttentionSide& other);
shader::AttentionGradientParams attention_gradient_params(const LowerContext& context,
                                                          const AttentionSide& own,
                                                          const AttentionSide& other, uint64_t blocks);

std::optional<std::string> refuse_attention_gradient_tiled(const LowerContext& context);
Lowered lower_attention_gradient_tiled(const LowerContext& context);
std::vector<std::string> attention_gradient_tiled_configurations(const LowerContext& context);

struct AttentionGradientShape {
  CooperativeShape matrix;
  uint32_t subgroup_size = 0;
  uint32_t subgroups_m = 0, subgroups_n = 0, blocks_m = 0;  // blocks_m of matrix.m own rows, of a subgroup
  uint32_t block_other = 0;                                 // others of a step
  double speed = 1;      // of the units' rate: less with smaller matrices than theirs
  double registers = 0;  // of an invocation
  uint32_t rows() const { return blocks_m * matrix.m; }
  uint32_t block_own() const { return subgroups_m * rows(); }
  uint32_t subgroups() const { return subgroups_m * subgroups_n; }
  uint32_t threads() const { return subgroups() * subgroup_size; }
  uint64_t shared_bytes(const AttentionSizes& sizes) const;  // of the run that takes more
  std::string name() const;
};
// The shapes that this device can run with such heads, of every matrix that it lists.
std::vector<AttentionGradientShape> attention_gradient_shapes(const AttentionSizes& sizes,
                                                              const Capabilities& device);
std::optional<std::string> refuse_attention_gradient_coopmat(const LowerContext& context);
double prefer_attention_gradient_coopmat(const LowerContext& context);
Lowered lower_attention_gradient_coopmat(const LowerContext& context);
std::vector<std::string> attention_gradient_coopmat_configurations(const LowerContext& context);

// ---- cpu_lanes and cpu_whole -----------------------------------------------------------------------

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
