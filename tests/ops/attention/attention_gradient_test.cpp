#include "runtime/ops/attention/attention_gradient.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/util/error.h"
#include "tests/support/gradient_test.h"
#include "tests/support/op_test.h"
#include "tests/support/reference_matmul.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

struct Size {
  uint64_t batch, heads, queries, keys, key_width, value_width;
};

// Rows of q, k and v that hold `before` elements (twice and three times as many) in front of the heads and
// `behind` them.
struct Case {
  Size size;
  uint64_t before = 0, behind = 0;
  double largest = 2;  // of q and k
  double scale = 0;
  bool store_lse = true;

  AttentionOptions options() const {
    return {.heads = size.heads,
            .key_width = size.key_width,
            .value_width = size.value_width,
            .q_offset = before,
            .k_offset = 2 * before,
            .v_offset = 3 * before,
            .scale = scale,
            .store_lse = store_lse};
  }
  double factor() const { return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(size.key_width)); }
  std::string label() const {
    return std::to_string(size.batch) + "x" + std::to_string(size.heads) + " heads of " +
           std::to_string(size.key_width) + " and " + std::to_string(size.value_width) + ", " +
           std::to_string(size.queries) + " queries, " + std::to_string(size.keys) + " keys, " +
           std::to_string(before) + " before and " + std::to_string(behind) + " behind";
  }
  std::vector<OpInput> inputs(uint64_t seed) const {
    const auto tensor = [&](uint64_t tokens, uint64_t width, uint64_t number, double bound) {
      return OpInput{random_tensor({size.batch, tokens, number * before + size.heads * width + behind},
                                   DType::f32, seed + number, -bound, bound)};
    };
    return {tensor(size.queries, size.key_width, 1, largest), tensor(size.keys, size.key_width, 2, largest),
            tensor(size.keys, size.value_width, 3, 1)};
  }
  reference::Heads q(std::span<const Values> in) const {
    return heads(in[0], size.queries, 1, size.key_width);
  }
  reference::Heads k(std::span<const Values> in) const { return heads(in[1], size.keys, 2, size.key_width); }
  reference::Heads v(std::span<const Values> in) const {
    return heads(in[2], size.keys, 3, size.value_width);
  }
  reference::Attention forward(std::span<const Values> in) const {
    return reference::attention(q(in), k(in), v(in), size.batch, size.heads, factor());
  }
  reference::AttentionGradients backward(std::span<const Values> in, const Values& given) const {
    return reference::attention_gradient(q(in), k(in), v(in), size.batch, size.heads, factor(), given);
  }

 private:
  reference::Heads heads(const Values& values, uint64_t tokens, uint64_t number, uint64_t width) const {
    return {values, tokens, number * before + size.heads * width + behind, number * before, width};
  }
};

std::vector<Values> values_of(const std::vector<OpInput>& inputs) {
  std::vector<Values> values;
  for (const OpInput& input : inputs) values.push_back(input.tensor.values);
  return values;
}

// A weight is exp(score - lse). f32 rounds a score and the log-sum-exp by half of 2^-23 of their magnitude,
// so that all of a row's weights, and with them the gradients, may be off by that; the usual 2e-6 is for what
// else is rounded.
double tolerance_for(const reference::Attention& expected) {
  double largest = 0;
  for (const double lse : expected.lse) largest = std::max(largest, std::abs(lse));
  for (const double score : expected.scores) largest = std::max(largest, std::abs(score));
  return 2e-6 + 2 * largest * 0x1p-24;
}

GradientCase gradient_case(const Case& c, uint64_t seed) {
  GradientCase result;
  result.label = c.label();
  result.inputs = c.inputs(seed);
  result.tolerance = tolerance_for(c.forward(values_of(result.inputs)));
  result.build = [=](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{attention(graph, "y", ids[0], ids[1], ids[2], c.options()).out};
  };
  result.forward = [=](auto in) { return Results{c.forward(in).out}; };
  result.backward = [=](auto in, auto given) {
    reference::AttentionGradients gradients = c.backward(in, given[0]);
    return Results{std::move(gradients.q), std::move(gradients.k), std::move(gradients.v)};
  };
  return result;
}

// The operator alone, given the reference's result: larger sizes than differences can check.
OpCase op_case(const Case& c, uint64_t seed) {
  OpCase result;
  result.label = c.label();
  result.inputs = c.inputs(seed);
  const std::vector<Values> in = values_of(result.inputs);
  reference::Attention expected = c.forward(in);
  result.tolerance = tolerance_for(expected);
  const auto rounded = [](Shape shape, Values values) {
    for (double& value : values) value = round_to(DType::f32, value);
    return OpInput{{shape, DType::f32, std::move(values)}};
  };
  const Size& s = c.size;
  result.inputs.push_back(rounded({s.batch, s.queries, s.heads * s.value_width}, expected.out));
  result.inputs.push_back(rounded({s.batch, s.heads, s.queries}, expected.lse));
  result.inputs.push_back(
      {random_tensor({s.batch, s.queries, s.heads * s.value_width}, DType::f32, seed + 4)});
  reference::AttentionGradients gradients = c.backward(in, result.inputs.back().tensor.values);
  result.expected = {std::move(gradients.q), std::move(gradients.k), std::move(gradients.v)};
  result.build = [c](Graph& graph, std::span<const ValueId> ids) {
    const AttentionGradients made =
        attention_gradient(graph, "g", ids[0], ids[1], ids[2], ids[3], ids[4], ids[5], c.options());
    return std::vector{made.q, made.k, made.v};
  };
  return result;
}

}  // namespace

TEST_CASE("attention's gradients agree with finite differences") {
  uint64_t seed = 10;
  for (const Size size :
       {Size{1, 2, 5, 5, 4, 4}, {2, 1, 1, 7, 3, 5}, {1, 1, 11, 2, 4, 8}, {2, 2, 9, 13, 12, 7}}) {
    check_gradients(gradient_case({.size = size}, seed += 10));
  }
  check_gradients(gradient_case({.size = {2, 2, 5, 7, 4, 3}, .before = 3, .behind = 2}, seed += 10));
  check_gradients(gradient_case({.size = {1, 2, 5, 7, 4, 4}, .scale = 0.3, .store_lse = false}, seed += 10));
}

TEST_CASE("attention_gradient matches the float64 reference") {
  uint64_t seed = 10;
  for (const Size size : {Size{1, 2, 1, 5, 4, 4},
                          {3, 2, 50, 50, 4, 4},
                          {1, 2, 50, 50, 12, 12},
                          {2, 1, 61, 7, 16, 11},
                          {1, 2, 7, 197, 6, 8},
                          {1, 1, 5, 400, 4, 3},
                          {1, 1, 197, 197, 48, 48},
                          {1, 2, 197, 197, 64, 64},
                          {1, 1, 33, 67, 72, 72},
                          {1, 1, 67, 33, 80, 80},
                          {1, 1, 35, 19, 128, 128},
                          {1, 1, 17, 21, 33, 255},
                          {1, 1, 21, 37, 256, 256}}) {
    // Wide heads take most of a minute to compile then, for what 80 and 255 show as well.
    const bool shown_by_others = size.key_width == 72 || size.key_width == 128 || size.key_width == 256;
    if (shown_by_others && compiles_slowly()) continue;
    check_op(op_attention_gradient, op_case({.size = size}, seed += 10));
  }
}

TEST_CASE("attention_gradient takes unaligned rows, and clears what attention didn't read") {
  check_op(op_attention_gradient, op_case({.size = {2, 2, 17, 23, 8, 5}, .before = 1, .behind = 3}, 1));
  check_op(op_attention_gradient, op_case({.size = {1, 3, 37, 41, 7, 12}, .before = 4}, 2));
  check_op(op_attention_gradient, op_case({.size = {1, 1, 5, 70, 16, 16}, .behind = 16}, 3));
}

TEST_CASE("attention_gradient is right for large scores") {
  // Up to about a hundred, where a row has hardly more than one weight.
  check_op(op_attention_gradient, op_case({.size = {1, 2, 37, 43, 16, 16}, .largest = 8, .scale = 0.5}, 1));
}

TEST_CASE("every tile of attention_gradient's kernels is right at its edges") {
  check_configurations(op_attention_gradient, op_case({.size = {1, 2, 37, 43, 20, 12}}, 1));
}

// What a projection wrote: its gradient is one tensor, which the three fill.
TEST_CASE("attention's gradient is one tensor where q, k and v are") {
  constexpr uint64_t batch = 2, tokens = 19, heads = 3, width = 8;
  const auto part = [](const Values& qkv, uint64_t i) {
    return reference::Heads{qkv, tokens, 3 * heads * width, i * heads * width, width};
  };
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  GradientCase c;
  c.label = "qkv";
  c.inputs = {{random_tensor({batch, tokens, 3 * heads * width}, DType::f32, 5, -2, 2)}};
  c.build = [](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{attention(graph, "y", ids[0], ids[0], ids[0],
                                 {.heads = heads,
                                  .key_width = width,
                                  .k_offset = heads * width,
                                  .v_offset = 2 * heads * width,
                                  .store_lse = true})
                           .out};
  };
  c.forward = [=](auto in) {
    return Results{
        reference::attention(part(in[0], 0), part(in[0], 1), part(in[0], 2), batch, heads, scale).out};
  };
  c.backward = [=](auto in, auto given) {
    const auto parts = reference::attention_gradient(part(in[0], 0), part(in[0], 1), part(in[0], 2), batch,
                                                     heads, scale, given[0]);
    Values sum = parts.q;
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += parts.k[i] + parts.v[i];
    return Results{std::move(sum)};
  };
  check_gradients(c);

  Graph graph;
  const ValueId qkv = graph.input("qkv", {batch, tokens, 3 * heads * width});
  const ValueId y = c.build(graph, {&qkv, 1})[0];
  const GradientSeed seed{y, graph.input("dy", graph.value(y).shape)};
  const size_t before = graph.nodes().size();
  add_gradients(graph, {&seed, 1}, {&qkv, 1});
  REQUIRE(graph.nodes().size() == before + 1);
  CHECK(graph.nodes().back().outputs.size() == 1);
}

// Keys and values in one tensor, queries in the same columns of it as the keys: what overlaps is summed.
TEST_CASE("attention's gradients are summed where q, k and v share columns") {
  constexpr uint64_t batch = 1, tokens = 11, heads = 2, width = 5;
  const auto part = [](const Values& x, uint64_t offset) {
    return reference::Heads{x, tokens, 2 * heads * width, offset, width};
  };
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  GradientCase c;
  c.label = "one tensor";
  c.inputs = {{random_tensor({batch, tokens, 2 * heads * width}, DType::f32, 5, -1, 1)}};
  c.build = [](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{attention(graph, "y", ids[0], ids[0], ids[0],
                                 {.heads = heads, .key_width = width, .v_offset = heads * width})
                           .out};
  };
  c.forward = [=](auto in) {
    return Results{
        reference::attention(part(in[0], 0), part(in[0], 0), part(in[0], heads * width), batch, heads, scale)
            .out};
  };
  c.backward = [=](auto in, auto given) {
    const auto parts = reference::attention_gradient(
        part(in[0], 0), part(in[0], 0), part(in[0], heads * width), batch, heads, scale, given[0]);
    Values sum = parts.q;
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += parts.k[i] + parts.v[i];
    return Results{std::move(sum)};
  };
  check_gradients(c);
}

TEST_CASE("attention_gradient lets NaN through, and only where it belongs") {
  const Case c{.size = {1, 1, 37, 43, 8, 8}};
  for (const uint32_t input : {0u, 1u, 2u, 5u}) {
    OpCase with_nan = op_case(c, 7);
    // A NaN in one row of q or of the gradient, or in one key or value.
    const double nan = std::numeric_limits<double>::quiet_NaN();
    with_nan.inputs[input].tensor.values[36 * 8 + 3] = nan;
    std::vector<Values> in = values_of(with_nan.inputs);
    if (input != 5) {
      const reference::Attention expected = c.forward(std::span(in).first(3));
      for (const auto& [at, values] : {std::pair{3, &expected.out}, {4, &expected.lse}}) {
        for (size_t i = 0; i < values->size(); ++i) {
          with_nan.inputs[static_cast<size_t>(at)].tensor.values[i] = round_to(DType::f32, (*values)[i]);
        }
      }
    }
    reference::AttentionGradients gradients = c.backward(std::span(in).first(3), in[5]);
    with_nan.expected = {std::move(gradients.q), std::move(gradients.k), std::move(gradients.v)};
    with_nan.allow_nonfinite = true;
    check_op(op_attention_gradient, with_nan);
  }
}

TEST_CASE("attention_gradient lets a NaN of what attention gave through") {
  const Case c{.size = {1, 1, 37, 43, 8, 8}};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const size_t row : {0, 17, 36}) {
    OpCase with_nan = op_case(c, 7);
    with_nan.allow_nonfinite = true;
    // Of the result: through its product with the gradient, which all of the row's weights are compared with.
    OpCase of_result = with_nan;
    of_result.inputs[3].tensor.values[row * 8 + 3] = nan;
    std::fill_n(of_result.expected[0].begin() + static_cast<std::ptrdiff_t>(row * 8), 8, nan);
    std::ranges::fill(of_result.expected[1], nan);
    check_op(op_attention_gradient, of_result);
    // Of the log-sum-exp: through the weights themselves, so the values' gradients too.
    OpCase of_lse = with_nan;
    of_lse.inputs[4].tensor.values[row] = nan;
    std::fill_n(of_lse.expected[0].begin() + static_cast<std::ptrdiff_t>(row * 8), 8, nan);
    std::ranges::fill(of_lse.expected[1], nan);
    std::ranges::fill(of_lse.expected[2], nan);
    check_op(op_attention_gradient, of_lse);
  }
}

TEST_CASE("attention's derivative refuses what it can't do with a sentence") {
  const auto gradients = [](DType dtype, bool of_lse) {
    Graph graph;
    const ValueId x = graph.input("x", {1, 5, 24}, dtype);
    const AttentionResult y = attention(
        graph, "y", x, x, x, {.heads = 2, .key_width = 4, .k_offset = 8, .v_offset = 16, .store_lse = true});
    const ValueId of = of_lse ? y.lse : y.out;
    const GradientSeed seed{of, graph.input("dy", graph.value(of).shape, graph.value(of).dtype)};
    return add_gradients(graph, {&seed, 1}, {&x, 1});
  };
  CHECK_NOTHROW(gradients(DType::f32, false));
  CHECK_THROWS_AS(gradients(DType::f32, true), Error);
  CHECK_THROWS_AS(gradients(DType::f16, false), Error);
}

}  // namespace vitrine::test
