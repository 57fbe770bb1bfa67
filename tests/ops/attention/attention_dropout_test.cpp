// Attention whose weights are dropped at random behind the softmax, and its derivative.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <utility>

#include "runtime/ops/attention/attention_gradient.h"
#include "runtime/ops/attention/attention_kernels.h"
#include "runtime/ops/attention/plain_attention.h"
#include "runtime/ops/elementwise/random_mask.h"
#include "runtime/util/error.h"
#include "tests/support/gradient_test.h"
#include "tests/support/op_test.h"
#include "tests/support/reference_matmul.h"
#include "tests/support/step.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

constexpr uint64_t seed = 0xfedcba9876543210;
constexpr uint32_t step = 12;

// q, k and v side by side in one tensor where there are as many queries as keys, else q in one of its own.
struct Case {
  uint64_t batch, heads, queries, keys, key_width, value_width;
  double rate = 0.3;
  uint32_t stream = 5;

  AttentionOptions options(ValueId words) const {
    return {.heads = heads,
            .key_width = key_width,
            .value_width = value_width,
            .store_lse = true,
            .drop_rate = rate,
            .drop_stream = stream,
            .step = words};
  }
  std::string label() const {
    return std::to_string(batch) + "x" + std::to_string(heads) + " heads of " + std::to_string(key_width) +
           " and " + std::to_string(value_width) + ", " + std::to_string(queries) + " queries, " +
           std::to_string(keys) + " keys, rate " + std::to_string(rate);
  }
  std::vector<OpInput> inputs(DType dtype) const {
    return {{random_tensor({batch, queries, heads * key_width}, dtype, 1, -2, 2)},
            {random_tensor({batch, keys, heads * key_width}, dtype, 2, -2, 2)},
            {random_tensor({batch, keys, heads * value_width}, dtype, 3)},
            {step_tensor(seed, step)}};
  }
  reference::Heads q(std::span<const Values> in) const {
    return {in[0], queries, heads * key_width, 0, key_width};
  }
  reference::Heads k(std::span<const Values> in) const {
    return {in[1], keys, heads * key_width, 0, key_width};
  }
  reference::Heads v(std::span<const Values> in) const {
    return {in[2], keys, heads * value_width, 0, value_width};
  }
  double scale() const { return 1 / std::sqrt(static_cast<double>(key_width)); }
  reference::WeightFactor factor() const {
    const RandomMask mask{seed, step, stream, rate};
    return [mask](uint64_t row, uint64_t key) {
      return mask.factor(static_cast<uint32_t>(key), static_cast<uint32_t>(row));
    };
  }
  reference::Attention forward(std::span<const Values> in) const {
    return reference::attention(q(in), k(in), v(in), batch, heads, scale(), factor());
  }
  reference::AttentionGradients backward(std::span<const Values> in, const Values& given) const {
    return reference::attention_gradient(q(in), k(in), v(in), batch, heads, scale(), given, factor());
  }
};

std::vector<Values> values_of(const std::vector<OpInput>& inputs) {
  std::vector<Values> values;
  for (const OpInput& input : inputs) values.push_back(input.tensor.values);
  return values;
}

OpCase forward_case(const Case& c, DType dtype) {
  OpCase result;
  result.label = c.label() + " " + std::string(name_of(dtype));
  result.inputs = c.inputs(dtype);
  reference::Attention expected = c.forward(values_of(result.inputs));
  result.expected = {std::move(expected.out), std::move(expected.lse)};
  result.build = [c](Graph& graph, std::span<const ValueId> ids) {
    const AttentionResult y = attention(graph, "y", ids[0], ids[1], ids[2], c.options(ids[3]));
    return std::vector{y.out, y.lse};
  };
  return result;
}

GradientCase gradient_case(const Case& c) {
  GradientCase result;
  result.label = c.label();
  result.inputs = c.inputs(DType::f32);
  // Scores and their log-sum-exp are below 16: see attention_gradient_test.cpp.
  result.tolerance = 2e-6 + 2 * 16 * 0x1p-24;
  result.build = [=](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{attention(graph, "y", ids[0], ids[1], ids[2], c.options(ids[3])).out};
  };
  result.forward = [=](auto in) { return Results{c.forward(in).out}; };
  result.backward = [=](auto in, auto given) {
    reference::AttentionGradients gradients = c.backward(in, given[0]);
    return Results{std::move(gradients.q), std::move(gradients.k), std::move(gradients.v), {}};
  };
  return result;
}

}  // namespace

TEST_CASE("attention drops the weights that the mask says") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    check_op(op_attention, forward_case({2, 3, 17, 23, 8, 5}, dtype));
    check_op(op_attention, forward_case({1, 2, 50, 50, 4, 4, 0.1, 0xffffffff}, dtype));
  }
  check_op(op_attention, forward_case({1, 2, 67, 197, 64, 64, 0.5}, DType::f32));
  check_op(op_attention, forward_case({1, 1, 21, 34, 128, 48, 0.2}, DType::f32));
  check_op(op_attention, forward_case({1, 1, 9, 15, 256, 256, 0.2}, DType::f32));
}

TEST_CASE("attention that drops weights drops no NaN") {
  const Case c{1, 2, 17, 23, 8, 5};
  check_nan(op_attention, forward_case(c, DType::f32), [=](auto in) {
    reference::Attention expected = c.forward(in);
    return std::vector{std::move(expected.out), std::move(expected.lse)};
  });
}

// In other configurations the keys fall into other steps.
TEST_CASE("attention drops the same weights in every configuration") {
  check_configurations(op_attention, forward_case({1, 2, 19, 45, 12, 12}, DType::f32));
}

TEST_CASE("attention's gradients have the mask of its result") {
  check_gradients(gradient_case({1, 2, 5, 9, 4, 3}));
  check_gradients(gradient_case({2, 1, 7, 13, 8, 8, 0.5, 1}));
  check_gradients(gradient_case({1, 2, 10, 11, 12, 12, 0.1, 2}));
}

TEST_CASE("attention_gradient drops the same weights in every configuration") {
  for (const Case& c : {Case{2, 2, 37, 45, 12, 20}, Case{1, 1, 21, 18, 128, 128}}) {
    if (c.key_width == 128 && compiles_slowly()) continue;
    OpCase op_case;
    op_case.label = c.label();
    op_case.inputs = c.inputs(DType::f32);
    const std::vector<Values> in = values_of(op_case.inputs);
    const reference::Attention result = c.forward(in);
    for (const auto& [shape, values] :
         {std::pair{Shape{c.batch, c.queries, c.heads * c.value_width}, &result.out},
          {Shape{c.batch, c.heads, c.queries}, &result.lse}}) {
      HostTensor& tensor = op_case.inputs.emplace_back(HostTensor{shape, DType::f32, *values}).tensor;
      for (double& value : tensor.values) value = round_to(DType::f32, value);
    }
    op_case.inputs.push_back({random_tensor({c.batch, c.queries, c.heads * c.value_width}, DType::f32, 9)});
    op_case.tolerance = 2e-6 + 2 * 16 * 0x1p-24;
    reference::AttentionGradients gradients = c.backward(in, op_case.inputs.back().tensor.values);
    op_case.expected = {std::move(gradients.q), std::move(gradients.k), std::move(gradients.v)};
    op_case.build = [c](Graph& graph, std::span<const ValueId> ids) {
      const AttentionGradients made =
          attention_gradient(graph, "g", ids[0], ids[1], ids[2], ids[4], ids[5], ids[6], c.options(ids[3]));
      return std::vector{made.q, made.k, made.v};
    };
    check_configurations(op_attention_gradient, op_case);
  }
}

TEST_CASE("attention needs a step to drop weights, and a rate that makes sense") {
  Graph graph;
  const ValueId x = graph.input("x", {1, 5, 8});
  const ValueId words = graph.input("step", {VITRINE_STEP_WORDS}, DType::u32);
  const auto with = [&](double rate, ValueId from) {
    return attention(graph, "y", x, x, x, {.heads = 2, .key_width = 4, .drop_rate = rate, .step = from});
  };
  CHECK_NOTHROW(with(0.5, words));
  CHECK_NOTHROW(with(0, {}));
  CHECK_THROWS_AS(with(0.5, {}), Error);
  CHECK_THROWS_AS(with(1, words), Error);
  CHECK_THROWS_AS(with(-0.5, words), Error);
  CHECK_THROWS_AS(with(0.5, x), Error);
  CHECK_THROWS_AS(
      plain_attention(graph, "y", x, x, x, {.heads = 2, .key_width = 4, .drop_rate = 0.5, .step = words}),
      Error);
}

TEST_CASE("attention's matrix units refuse to drop weights") {
  Graph graph;
  const ValueId x = graph.input("x", {1, 16, 192}, DType::f16);
  attention(graph, "y", x, x, x,
            {.heads = 2,
             .key_width = 32,
             .drop_rate = 0.5,
             .step = graph.input("step", {VITRINE_STEP_WORDS}, DType::u32)});
  const LowerContext context(graph, graph.nodes()[0], test_device().device->capabilities());
  for (const auto refuses : {refuse_attention_coopmat, refuse_attention_columns, refuse_attention_flexible,
                             refuse_attention_coopmat2}) {
    CHECK(refuses(context).value().find("dropout") != std::string::npos);
  }
}

}  // namespace vitrine::test
