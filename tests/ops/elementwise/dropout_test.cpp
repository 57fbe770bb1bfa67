#include "runtime/ops/elementwise/dropout.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>

#include "runtime/graph/autodiff.h"
#include "runtime/graph/executable.h"
#include "runtime/ops/elementwise/random_mask.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/util/error.h"
#include "shaders/lib/step_state.h"
#include "tests/support/constants.h"
#include "tests/support/op_test.h"
#include "tests/support/step.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using test::HostTensor;
using test::step_tensor;

constexpr uint64_t seed = 0x123456789abcdef1;

std::vector<double> masked(const std::vector<double>& x, const RandomMask& mask, uint64_t group) {
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * mask.factor(static_cast<uint32_t>(i / group));
  return y;
}

test::OpCase case_of(HostTensor x, const DropoutOptions& options, uint32_t step) {
  test::OpCase c;
  c.label = "rate " + std::to_string(options.rate) + ", groups of " + std::to_string(options.group) + ", " +
            x.shape.to_string() + " " + std::string(name_of(x.dtype));
  c.expected = {masked(x.values, {seed, step, options.stream, options.rate}, options.group)};
  c.inputs = {{std::move(x)}, {step_tensor(seed, step)}};
  c.build = [=](Graph& graph, std::span<const ValueId> in) {
    return std::vector{dropout(graph, "y", in[0], in[1], options)};
  };
  return c;
}

void check(HostTensor x, const DropoutOptions& options, uint32_t step = 7) {
  test::check_op(op_dropout, case_of(std::move(x), options, step));
}

// What one run makes of ones.
std::vector<float> of_ones(uint64_t count, uint64_t from_seed, uint32_t step, const DropoutOptions& options) {
  test::TestDevice& device = test::test_device();
  test::RandomConstants none(1);
  WeightStore weights(*device.pipelines, none);
  const auto graph = std::make_shared<Graph>();
  const ValueId words = graph->input("step", {VITRINE_STEP_WORDS}, DType::u32);
  graph->output(dropout(*graph, "drop", graph->input("x", {count}), words, options), "y");
  Executable run(weights, make_plan(graph, device.device->capabilities()));
  const std::vector<float> ones(count, 1);
  const auto x = run.input(run.input_index("x"), 0), step_words = run.input(run.input_index("step"), 0);
  std::memcpy(x.data(), ones.data(), x.size());
  const std::vector<std::byte> encoded = test::encode(step_tensor(from_seed, step));
  std::memcpy(step_words.data(), encoded.data(), encoded.size());
  run.run();
  std::vector<float> y(count);
  const auto bytes = run.output(0);
  std::memcpy(y.data(), bytes.data(), bytes.size());
  test::require_no_validation_messages();
  return y;
}

TEST_CASE("dropout drops what the mask says") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    check(test::random_tensor({5}, dtype, 1), {.rate = 0.5});
    check(test::random_tensor({2, 50, 7}, dtype, 2), {.rate = 0.1, .stream = 3});
    check(test::random_tensor({197, 31}, dtype, 3), {.rate = 0.9, .stream = 0xfffffffe}, 0xffffffff);
  }
}

TEST_CASE("dropout drops whole groups") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    check(test::random_tensor({9, 5, 7}, dtype, 1), {.rate = 0.4, .stream = 2, .group = 35});
    check(test::random_tensor({13, 2}, dtype, 2), {.rate = 0.4, .group = 2});
    check(test::random_tensor({13, 3}, dtype, 3), {.rate = 0.4, .group = 3});
    check(test::random_tensor({19, 197, 4}, dtype, 4), {.rate = 0.2, .stream = 1, .group = 788});
  }
}

TEST_CASE("dropout drops no NaN") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const double rate : {0.1, 0.5, 0.9}) {
      const DropoutOptions options{.rate = rate};
      test::check_nan(op_dropout, case_of(test::random_tensor({3, 7}, dtype, 1), options, 7), [=](auto in) {
        return test::Results{masked(in[0], {seed, 7, options.stream, rate}, options.group)};
      });
    }
  }
}

TEST_CASE("dropout has the reference's bits") {
  for (const uint64_t group : {1, 3, 64}) {
    test::OpCase c =
        case_of(test::filled({group, 5003}, DType::f32, 1), {.rate = 0.37, .stream = 5, .group = group}, 11);
    c.exact = true;
    test::check_op(op_dropout, c);
  }
}

TEST_CASE("dropout keeps as many as its rate says") {
  constexpr uint64_t draws = 1'000'000;
  for (const double rate : {0.01, 0.1, 0.5, 0.9}) {
    INFO("rate " << rate);
    const std::vector<float> y = of_ones(draws, 42, 1, {.rate = rate, .stream = 9});
    const auto kept = std::ranges::count(y, kept_factor(rate));
    CHECK(kept + std::ranges::count(y, 0.0f) == draws);
    const double sigma = std::sqrt(rate * (1 - rate) * draws);
    CHECK(std::abs(static_cast<double>(kept) - (1 - rate) * draws) < 4 * sigma);
  }
}

TEST_CASE("dropout repeats with the same seed, and with nothing else") {
  const DropoutOptions options{.rate = 0.5, .stream = 1};
  const std::vector<float> first = of_ones(1000, seed, 3, options);
  CHECK(of_ones(1000, seed, 3, options) == first);
  const auto agreeing = [&](const std::vector<float>& other) {
    uint64_t equal = 0;
    for (size_t i = 0; i < first.size(); ++i) equal += first[i] == other[i];
    return equal;
  };
  // Of 1000 fair coins 400 to 600 agree but for one time in 10^10.
  for (const auto& other : {of_ones(1000, seed, 4, options), of_ones(1000, seed + 1, 3, options),
                            of_ones(1000, seed ^ (uint64_t{1} << 40), 3, options),
                            of_ones(1000, seed, 3, {.rate = 0.5, .stream = 2})}) {
    CHECK(agreeing(other) > 400);
    CHECK(agreeing(other) < 600);
  }
}

TEST_CASE("dropout's gradient has the mask of its result") {
  for (const uint64_t group : {1, 35}) {
    const DropoutOptions options{.rate = 0.3, .stream = 4, .group = group};
    test::OpCase c = case_of(test::random_tensor({9, 35}, DType::f32, 1), options, 5);
    const HostTensor dy = test::random_tensor({9, 35}, DType::f32, 2);
    c.expected.push_back(masked(dy.values, {seed, 5, 4, 0.3}, group));
    c.inputs.push_back({dy});
    c.build = [=](Graph& graph, std::span<const ValueId> in) {
      const ValueId x = scale(graph, "x", in[0], 1);
      const ValueId y = dropout(graph, "y", x, in[1], options);
      const GradientSeed given{y, in[2]};
      return std::vector{y, add_gradients(graph, {&given, 1}, {&x, 1})[0]};
    };
    test::check_op(op_dropout, c);
  }
}

TEST_CASE("dropout of nothing is no node") {
  Graph graph;
  const ValueId x = graph.input("x", {4});
  CHECK(dropout(graph, "y", x, graph.input("step", {VITRINE_STEP_WORDS}, DType::u32), {}) == x);
  CHECK(graph.nodes().empty());
}

TEST_CASE("dropout may overwrite its input") {
  test::OpCase c = case_of(test::random_tensor({5, 41}, DType::f32, 1), {.rate = 0.5}, 1);
  c.build = [](Graph& graph, std::span<const ValueId> in) {
    const ValueId copy = scale(graph, "copy", in[0], 1);
    return std::vector{scale(graph, "z", dropout(graph, "y", copy, in[1], {.rate = 0.5}), 1)};
  };
  test::check_op(op_dropout, c);
}

TEST_CASE("dropout refuses rates, groups and steps that make no sense") {
  Graph graph;
  const ValueId x = graph.input("x", {4, 6});
  const ValueId step = graph.input("step", {VITRINE_STEP_WORDS}, DType::u32);
  CHECK_THROWS_AS(dropout(graph, "y", x, step, {.rate = 1}), Error);
  CHECK_THROWS_AS(dropout(graph, "y", x, step, {.rate = -0.1}), Error);
  CHECK_THROWS_AS(dropout(graph, "y", x, step, {.rate = NAN}), Error);
  CHECK_THROWS_AS(dropout(graph, "y", x, step, {.rate = 0.5, .group = 5}), Error);
  CHECK_THROWS_AS(dropout(graph, "y", x, step, {.rate = 0.5, .group = 0}), Error);
  CHECK_THROWS_AS(dropout(graph, "y", x, graph.input("words", {3}, DType::u32), {.rate = 0.5}), Error);
  CHECK_THROWS_AS(dropout(graph, "y", x, graph.input("floats", {VITRINE_STEP_WORDS}), {.rate = 0.5}), Error);
}

}  // namespace
}  // namespace vitrine
