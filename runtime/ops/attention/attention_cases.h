// Attention at small sizes, of which the operators of this folder make their cases.
#pragma once

#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/check/op_case.h"
#include "runtime/check/reference_matmul.h"
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/elementwise/random_mask.h"
#include "shaders/lib/step_state.h"

namespace vitrine {

struct AttentionCase {
  uint64_t batch, heads, queries, keys, width;
  double drop_rate = 0;
  bool store_lse = true;
  bool rounded = false;
  bool causal = false;
  reference::RelativeGrid grid = {};  // of a relative bias, if it has a width
  bool by_rows = false;               // which is then not of a table
  // Where the heads begin in a row of q and of k, and what is behind the last one: with heads of whole
  // eights, all of a row is.
  static constexpr uint64_t q_offset = 8, k_offset = 16, rest = 8;
  uint64_t q_row() const { return q_offset + heads * width + rest; }
  uint64_t k_row() const { return k_offset + heads * width + rest; }
  AttentionOptions options(std::span<const ValueId> ids = {}) const {
    return {
        .heads = heads,
        .key_width = width,
        .q_offset = q_offset,
        .k_offset = k_offset,
        .scale = 1 / std::sqrt(static_cast<double>(width)),
        .store_lse = store_lse,
        .rounded = rounded,
        .drop_rate = drop_rate,
        .drop_stream = 4,
        .step = drop_rate != 0 && !ids.empty() ? ids.back() : ValueId{},
        .causal = causal,
        .bias = biased() && !by_rows && !ids.empty() ? ids[ids.size() - (drop_rate != 0 ? 2 : 1)] : ValueId{},
        .bias_height = grid.height,
        .bias_width = grid.width,
        .bias_first = grid.first,
        .bias_rows = by_rows && !ids.empty() ? ids.back() : ValueId{}};
  }
  std::string label() const {
    return std::to_string(heads) + " heads of " + std::to_string(width) +
           (drop_rate != 0 ? ", dropout" : "") + (store_lse ? "" : ", no log-sum-exp") +
           (rounded ? ", rounded" : "") + (causal ? ", causal" : "") + (biased() ? ", biased" : "") +
           (by_rows ? " by rows" : "");
  }
  // The weights' factors, and the step of which they are drawn.
  reference::WeightFactor factor() const {
    if (drop_rate == 0) return {};
    return [mask = RandomMask{.seed = 7, .step = 3, .stream = 4, .rate = drop_rate}](uint64_t row,
                                                                                     uint64_t key) {
      return mask.factor(static_cast<uint32_t>(key), static_cast<uint32_t>(row));
    };
  }
  bool biased() const { return grid.width != 0; }
  reference::HostTensor table() const {
    const Shape of_rows{batch, heads, queries, grid.height + grid.width}, of_table{grid.rows(), heads};
    return reference::random_tensor(by_rows ? of_rows : of_table, DType::f32, 5, -2, 2);
  }
  // Behind q, k and v what the derivative reads: what attention gave, and a gradient times a factor.
  reference::AttentionGradients add_gradient_inputs(std::vector<reference::OpInput>& in,
                                                    double times = 1) const {
    const reference::Attention result = expected(in);
    for (const auto& [shape, values] : {std::pair{Shape{batch, queries, heads * width}, &result.out},
                                        {Shape{batch, heads, queries}, &result.lse}}) {
      reference::HostTensor& tensor =
          in.emplace_back(reference::HostTensor{shape, DType::f32, *values}).tensor;
      for (double& value : tensor.values) value = reference::round_to(DType::f32, value);
    }
    in.push_back({reference::random_tensor({batch, queries, heads * width}, DType::f32, 4)});
    for (double& value : in.back().tensor.values) value *= times;
    return reference::attention_gradient(q(in), k(in), v(in), batch, heads, options().scale,
                                         in.back().tensor.values, factor(), bias());
  }
  // What it reads behind everything else: a table, a step.
  void add_extras(std::vector<reference::OpInput>& in) const {
    if (biased()) in.push_back({table(), by_rows ? Role::input : Role::constant});
    if (drop_rate == 0) return;
    reference::HostTensor step = reference::filled({VITRINE_STEP_WORDS}, DType::u32, 0);
    step.values[VITRINE_STEP_SEED_LOW] = 7;
    step.values[VITRINE_STEP_NUMBER] = 3;
    in.push_back({std::move(step)});
  }
  // q and k with more in their rows than the heads; values apart.
  std::vector<reference::OpInput> inputs(DType dtype) const {
    return {{reference::random_tensor({batch, queries, q_row()}, dtype, 1, -2, 2)},
            {reference::random_tensor({batch, keys, k_row()}, dtype, 2, -2, 2)},
            {reference::random_tensor({batch, keys, heads * width}, dtype, 3)}};
  }
  reference::Attention expected(const std::vector<reference::OpInput>& in) const {
    return reference::attention(q(in), k(in), v(in), batch, heads, options().scale, factor(), sees(), bias());
  }
  reference::ScoreBias bias() const {
    if (!biased()) return {};
    return by_rows ? reference::bias_rows(grid, table().values, heads)
                   : reference::relative_bias(grid, table().values, heads);
  }
  reference::Sees sees() const {
    if (!causal) return {};
    return [](uint64_t query, uint64_t key) { return key <= query; };
  }
  reference::Heads q(const std::vector<reference::OpInput>& in) const {
    return {in[0].tensor.values, queries, q_row(), q_offset, width};
  }
  reference::Heads k(const std::vector<reference::OpInput>& in) const {
    return {in[1].tensor.values, keys, k_row(), k_offset, width};
  }
  reference::Heads v(const std::vector<reference::OpInput>& in) const {
    return {in[2].tensor.values, keys, heads * width, 0, width};
  }
};
// Heads of an odd width, and those of most models; so many keys that kernels take as many at a time as of
// 197.
constexpr AttentionCase small_attention{1, 2, 5, 7, 5}, usual_attention{2, 2, 37, 43, 64},
    dropped_attention{2, 2, 41, 37, 64, 0.25}, attention_without_lse{2, 2, 37, 43, 64, 0, false};
// As text towers have them: fewer tokens than a step takes, and more than a workgroup's queries and keys.
constexpr AttentionCase causal_attentions[] = {
    {.batch = 1, .heads = 2, .queries = 5, .keys = 5, .width = 5, .causal = true},
    {.batch = 2, .heads = 2, .queries = 77, .keys = 77, .width = 64, .causal = true},
    {.batch = 1, .heads = 1, .queries = 131, .keys = 131, .width = 20, .store_lse = false, .causal = true}};
// As BEiT and timm's models with relative positions have them: no more rows of the table than patches are
// apart, or three more of a class token; and more tokens than a workgroup's queries and keys.
constexpr AttentionCase biased_attentions[] = {
    {.batch = 1, .heads = 2, .queries = 6, .keys = 6, .width = 5, .grid = {2, 3, 0}},
    {.batch = 2, .heads = 3, .queries = 36, .keys = 36, .width = 64, .grid = {5, 7, 1}},
    {.batch = 1,
     .heads = 1,
     .queries = 145,
     .keys = 145,
     .width = 20,
     .store_lse = false,
     .grid = {9, 16, 1}}};
// As SAM has them.
constexpr AttentionCase bias_rows_attentions[] = {
    {.batch = 2, .heads = 2, .queries = 35, .keys = 35, .width = 64, .grid = {5, 7}, .by_rows = true},
    {.batch = 1,
     .heads = 2,
     .queries = 144,
     .keys = 144,
     .width = 20,
     .store_lse = false,
     .grid = {9, 16},
     .by_rows = true}};
constexpr AttentionCase dropped_bias{
    .batch = 1, .heads = 2, .queries = 13, .keys = 13, .width = 5, .drop_rate = 0.25, .grid = {3, 4, 1}};
// As small models train with: few tokens, and heads of few elements or of no power of two. Every number of
// keys that a kernel takes at a time is code of its own.
constexpr AttentionCase trained_attentions[] = {
    {2, 2, 50, 50, 4}, {1, 4, 17, 17, 16}, {1, 2, 65, 65, 48}, {1, 4, 17, 17, 16, 0.25}};

// The same of what f16 keeps of it, where matrix units multiply: the two above, rows by single values and
// by whole eights, and heads of which some devices keep the queries in registers, or can't.
inline std::vector<AttentionCase> rounded_attentions() {
  std::vector<AttentionCase> cases{small_attention, usual_attention, biased_attentions[1],
                                   bias_rows_attentions[0]};
  cases.insert(cases.end(), std::begin(trained_attentions), std::end(trained_attentions));
  for (AttentionCase& a : cases) a.rounded = true;
  return cases;
}

}  // namespace vitrine
