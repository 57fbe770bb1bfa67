// Attention at small sizes, of which the operators of this folder make their cases.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
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
  AttentionOptions options(std::span<const ValueId> ids = {}) const {
    return {.heads = heads,
            .key_width = width,
            .q_offset = 4,
            .k_offset = 8,
            .scale = 1 / std::sqrt(static_cast<double>(width)),
            .store_lse = true,
            .drop_rate = drop_rate,
            .drop_stream = 4,
            .step = drop_rate != 0 && !ids.empty() ? ids.back() : ValueId{}};
  }
  std::string label() const {
    return std::to_string(heads) + " heads of " + std::to_string(width) + (drop_rate != 0 ? ", dropout" : "");
  }
  // The weights' factors, and the step of which they are drawn.
  reference::WeightFactor factor() const {
    if (drop_rate == 0) return {};
    return [mask = RandomMask{.seed = 7, .step = 3, .stream = 4, .rate = drop_rate}](uint64_t row,
                                                                                     uint64_t key) {
      return mask.factor(static_cast<uint32_t>(key), static_cast<uint32_t>(row));
    };
  }
  void add_step(std::vector<reference::OpInput>& in) const {
    if (drop_rate == 0) return;
    reference::HostTensor step = reference::filled({VITRINE_STEP_WORDS}, DType::u32, 0);
    step.values[VITRINE_STEP_SEED_LOW] = 7;
    step.values[VITRINE_STEP_NUMBER] = 3;
    in.push_back({std::move(step)});
  }
  // q and k with more in their rows than the heads; values apart.
  std::vector<reference::OpInput> inputs(DType dtype) const {
    return {{reference::random_tensor({batch, queries, heads * width + 8}, dtype, 1, -2, 2)},
            {reference::random_tensor({batch, keys, heads * width + 12}, dtype, 2, -2, 2)},
            {reference::random_tensor({batch, keys, heads * width}, dtype, 3)}};
  }
  reference::Attention expected(const std::vector<reference::OpInput>& in) const {
    return reference::attention(q(in), k(in), v(in), batch, heads, options().scale, factor());
  }
  reference::Heads q(const std::vector<reference::OpInput>& in) const {
    return {in[0].tensor.values, queries, heads * width + 8, 4, width};
  }
  reference::Heads k(const std::vector<reference::OpInput>& in) const {
    return {in[1].tensor.values, keys, heads * width + 12, 8, width};
  }
  reference::Heads v(const std::vector<reference::OpInput>& in) const {
    return {in[2].tensor.values, keys, heads * width, 0, width};
  }
};
constexpr AttentionCase small_attention{1, 2, 5, 7, 4}, usual_attention{2, 2, 37, 41, 64},
    dropped_attention{2, 2, 37, 41, 64, 0.25};

}  // namespace vitrine
