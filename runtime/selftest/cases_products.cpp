// Matrix products and attention.
#include <cmath>
#include <utility>

#include "runtime/ops/attention/attention.h"
#include "runtime/ops/attention/attention_gradient.h"
#include "runtime/ops/attention/attention_rows.h"
#include "runtime/ops/attention/plain_attention.h"
#include "runtime/ops/elementwise/random_mask.h"
#include "runtime/ops/explain/attention_rollout.h"
#include "runtime/ops/products/grouped_matmul.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/tokens/patch_embed.h"
#include "runtime/selftest/cases.h"
#include "runtime/selftest/reference_matmul.h"
#include "shaders/lib/step_state.h"

namespace vitrine::selftest {
namespace {

constexpr DType dtypes[] = {DType::f32, DType::f16};

// The bare product, of a depth that four doesn't divide.
OpCase bare_matmul(DType in, DType out) {
  constexpr uint64_t m = 5, n = 67, k = 37;
  OpCase c;
  c.label = "5x67x37";
  c.inputs = {{random_tensor({m, k}, in, 1)}, {random_tensor({n, k}, in, 2), Role::constant}};
  c.expected = {reference::matmul(c.inputs[0].tensor.values, c.inputs[1].tensor.values, m, n, k, {})};
  c.build = [out](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{matmul(graph, "y", ids[0], ids[1], {.out = out})};
  };
  return c;
}

// All that can be fused behind it, over more than one of the largest tiles.
OpCase full_matmul(DType in, DType out) {
  constexpr uint64_t m = 131, n = 137, k = 72;
  OpCase c;
  c.label = "131x137x72 with everything behind it";
  c.inputs = {{random_tensor({m, k}, in, 3)},
              {random_tensor({n, k}, in, 4), Role::constant},
              {random_tensor({n}, DType::f32, 5), Role::constant},
              {random_tensor({n}, DType::f32, 6), Role::constant},
              {random_tensor({m, n}, DType::f32, 7)}};
  const auto values = [&](size_t i) { return c.inputs[i].tensor.values; };
  c.expected = {reference::matmul(
      values(0), values(1), m, n, k,
      {.bias = values(2), .scale = values(3), .residual = values(4), .activation = Activation::gelu})};
  c.build = [out](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{matmul(
        graph, "y", ids[0], ids[1],
        {.bias = ids[2], .activation = Activation::gelu, .scale = ids[3], .residual = ids[4], .out = out})};
  };
  return c;
}

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
  void add_step(std::vector<OpInput>& in) const {
    if (drop_rate == 0) return;
    HostTensor step = filled({VITRINE_STEP_WORDS}, DType::u32, 0);
    step.values[VITRINE_STEP_SEED_LOW] = 7;
    step.values[VITRINE_STEP_NUMBER] = 3;
    in.push_back({std::move(step)});
  }
  // q and k with more in their rows than the heads; values apart.
  std::vector<OpInput> inputs(DType dtype) const {
    return {{random_tensor({batch, queries, heads * width + 8}, dtype, 1, -2, 2)},
            {random_tensor({batch, keys, heads * width + 12}, dtype, 2, -2, 2)},
            {random_tensor({batch, keys, heads * width}, dtype, 3)}};
  }
  reference::Attention expected(const std::vector<OpInput>& in) const {
    return reference::attention(q(in), k(in), v(in), batch, heads, options().scale, factor());
  }
  reference::Heads q(const std::vector<OpInput>& in) const {
    return {in[0].tensor.values, queries, heads * width + 8, 4, width};
  }
  reference::Heads k(const std::vector<OpInput>& in) const {
    return {in[1].tensor.values, keys, heads * width + 12, 8, width};
  }
  reference::Heads v(const std::vector<OpInput>& in) const {
    return {in[2].tensor.values, keys, heads * width, 0, width};
  }
};
constexpr AttentionCase small{1, 2, 5, 7, 4}, usual{2, 2, 37, 41, 64}, dropped{2, 2, 37, 41, 64, 0.25};

}  // namespace

std::vector<OpCase> matmul_cases() {
  std::vector<OpCase> cases;
  for (const auto& [in, out] :
       {std::pair{DType::f32, DType::f32}, {DType::f16, DType::f16}, {DType::f16, DType::f32}}) {
    cases.push_back(bare_matmul(in, out));
    cases.push_back(full_matmul(in, out));
  }
  return cases;
}

std::vector<OpCase> grouped_matmul_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    constexpr uint64_t rows = 11, groups = 3, n = 5, k = 7;
    OpCase& c = cases.emplace_back();
    c.label = "3 groups";
    c.inputs = {{random_tensor({rows, groups * k}, dtype, 1)},
                {random_tensor({groups, n, k}, dtype, 2), Role::constant},
                {random_tensor({groups, n}, DType::f32, 3), Role::constant}};
    c.expected = {reference::grouped_matmul(c.inputs[0].tensor.values, c.inputs[1].tensor.values,
                                            c.inputs[2].tensor.values, groups, n, k)};
    c.build = [](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{grouped_matmul(graph, "y", ids[0], ids[1], ids[2])};
    };
  }
  return cases;
}

std::vector<OpCase> patch_embed_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const Shape image{2, 3, 22, 17}, weight{37, 3, 4, 5};  // rows and columns are left over
    OpCase& c = cases.emplace_back();
    c.label = "patches of 4x5";
    c.inputs = {{random_tensor(image, DType::f32, 1)},
                {random_tensor(weight, dtype, 2), Role::constant},
                {random_tensor({37}, DType::f32, 3), Role::constant}};
    c.expected = {reference::patch_embed(c.inputs[0].tensor.values, image, c.inputs[1].tensor.values, weight,
                                         c.inputs[2].tensor.values)};
    c.build = [](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{
          patch_embed(graph, "y", ids[0], ids[1], ids[2], {.patch_height = 4, .patch_width = 5})};
    };
  }
  return cases;
}

std::vector<OpCase> attention_gradient_cases() {
  std::vector<OpCase> cases;
  for (const AttentionCase& a : {small, usual, dropped}) {
    OpCase& c = cases.emplace_back();
    c.label = a.label();
    c.inputs = a.inputs(DType::f32);
    const reference::Attention result = a.expected(c.inputs);
    for (const auto& [shape, values] : {std::pair{Shape{a.batch, a.queries, a.heads * a.width}, &result.out},
                                        {Shape{a.batch, a.heads, a.queries}, &result.lse}}) {
      HostTensor& tensor = c.inputs.emplace_back(HostTensor{shape, DType::f32, *values}).tensor;
      for (double& value : tensor.values) value = round_to(DType::f32, value);
    }
    c.inputs.push_back({random_tensor({a.batch, a.queries, a.heads * a.width}, DType::f32, 4)});
    reference::AttentionGradients gradients =
        reference::attention_gradient(a.q(c.inputs), a.k(c.inputs), a.v(c.inputs), a.batch, a.heads,
                                      a.options().scale, c.inputs.back().tensor.values, a.factor());
    c.expected = {std::move(gradients.q), std::move(gradients.k), std::move(gradients.v)};
    a.add_step(c.inputs);
    c.build = [a](Graph& graph, std::span<const ValueId> ids) {
      const AttentionGradients made =
          attention_gradient(graph, "g", ids[0], ids[1], ids[2], ids[3], ids[4], ids[5], a.options(ids));
      return std::vector{made.q, made.k, made.v};
    };
  }
  return cases;
}

std::vector<OpCase> attention_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const AttentionCase& size : {small, usual, dropped}) {
      OpCase& c = cases.emplace_back();
      c.label = size.label();
      c.inputs = size.inputs(dtype);
      const reference::Attention expected = size.expected(c.inputs);
      c.expected = {expected.out, expected.lse};
      size.add_step(c.inputs);
      c.build = [size](Graph& graph, std::span<const ValueId> ids) {
        const AttentionResult result = attention(graph, "y", ids[0], ids[1], ids[2], size.options(ids));
        return std::vector{result.out, result.lse};
      };
    }
  }
  return cases;
}

std::vector<OpCase> attention_rows_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const bool mean_heads : {false, true}) {
      const AttentionCase& size = usual;
      OpCase& c = cases.emplace_back();
      c.label = mean_heads ? "the mean of heads" : "all heads";
      c.inputs = size.inputs(dtype);
      const reference::Attention expected = size.expected(c.inputs);
      HostTensor lse{{size.batch, size.heads, size.queries}, DType::f32, expected.lse};
      for (double& value : lse.values) value = round_to(DType::f32, value);
      const uint64_t heads_out = mean_heads ? 1 : size.heads, each = size.queries * size.keys;
      std::vector<double>& weights = c.expected.emplace_back(size.batch * heads_out * each);
      for (uint64_t i = 0; i < expected.scores.size(); ++i) {
        const uint64_t batch = i / (size.heads * each), head = mean_heads ? 0 : i / each % size.heads;
        weights[(batch * heads_out + head) * each + i % each] +=
            std::exp(expected.scores[i] - lse.values[i / size.keys]) / (mean_heads ? size.heads : 1);
      }
      c.inputs[2] = {std::move(lse)};
      c.tolerance = 2e-6;  // q and k are exact in f16 as well, and the weights are f32
      c.build = [options = size.options(), mean_heads](Graph& graph, std::span<const ValueId> ids) {
        return std::vector{
            attention_rows(graph, "y", ids[0], ids[1], ids[2], options, {.mean_heads = mean_heads})};
      };
    }
  }
  return cases;
}

std::vector<OpCase> attention_rollout_cases() {
  constexpr uint64_t batch = 2, tokens = 17;
  OpCase c;
  c.label = "the last layer's first row";
  c.inputs = {{random_tensor({batch, tokens, tokens}, DType::f32, 1, 0, 1)}};
  std::vector<double>& row = c.expected.emplace_back();
  for (uint64_t b = 0; b < batch; ++b) {
    // (maps + I) / 2, its first row divided by the row's sum.
    double sum = 0;
    for (uint64_t j = 0; j < tokens; ++j)
      sum += c.inputs[0].tensor.values[b * tokens * tokens + j] + (j == 0 ? 1 : 0);
    for (uint64_t j = 0; j < tokens; ++j)
      row.push_back((c.inputs[0].tensor.values[b * tokens * tokens + j] + (j == 0 ? 1 : 0)) / sum);
  }
  c.build = [](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{attention_rollout(graph, "y", ids[0], RolloutRows{.rows = 1})};
  };
  return {c};
}

std::vector<OpCase> plain_attention_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    OpCase& c = cases.emplace_back();
    c.label = "2 heads of 64";
    c.inputs = usual.inputs(dtype);
    const reference::Attention expected = usual.expected(c.inputs);
    c.expected = {expected.out, expected.scores, expected.weights};
    c.build = [](Graph& graph, std::span<const ValueId> ids) {
      const PlainAttentionResult result =
          plain_attention(graph, "y", ids[0], ids[1], ids[2], usual.options());
      return std::vector{result.out, result.scores, result.weights};
    };
  }
  return cases;
}

}  // namespace vitrine::selftest
