#include "tests/support/gradient_test.h"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <optional>
#include <random>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/products/grouped_matmul.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/weight_gradient.h"
#include "tests/support/turns.h"

namespace vitrine::test {
namespace {

constexpr uint64_t gradient_seed = 1000;

// Operators with dozens of kernels that are slow to compile, and tests of their own that run them all.
constexpr std::array looked_at_elsewhere{&op_matmul, &op_grouped_matmul, &op_weight_gradient, &op_attention};

double dot(std::span<const Values> a, std::span<const Values> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].size() == b[i].size());
    for (size_t j = 0; j < a[i].size(); ++j) sum += a[i][j] * b[i][j];
  }
  return sum;
}

// How the sum of results times gradients changes along a direction of one input.
double slope(const GradientCase& c, std::vector<Values> inputs, std::span<const Values> gradients,
             size_t input, const Values& direction) {
  // Central differences are off by step^2 times the third derivative, and by 1e-16 / step of what they
  // subtract. The fourth-order form has room for both within 1e-6.
  constexpr double step = 1e-3;
  const Values middle = inputs[input];
  const auto at = [&](double factor) {
    for (size_t i = 0; i < middle.size(); ++i) inputs[input][i] = middle[i] + factor * step * direction[i];
    return dot(c.forward(inputs), gradients);
  };
  return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step);
}

void check_reference(const GradientCase& c, const std::vector<Values>& inputs,
                     const std::vector<Values>& gradients, const std::vector<Values>& expected) {
  std::mt19937_64 engine(7);
  for (size_t input = 0; input < inputs.size(); ++input) {
    if (expected[input].empty()) continue;
    INFO("float64 gradient of input " << input);
    REQUIRE(expected[input].size() == inputs[input].size());
    double largest = 0, norm = 0;
    for (const double value : expected[input]) {
      largest = std::max(largest, std::abs(value));
      norm += value * value;
    }
    norm = std::sqrt(norm);
    // A direction of +-1 changes the sum by about the gradient's norm, an element by at most its largest.
    const auto check = [&](const Values& direction, double scale) {
      double from_backward = 0;
      for (size_t i = 0; i < direction.size(); ++i) from_backward += direction[i] * expected[input][i];
      const double found = slope(c, inputs, gradients, input, direction);
      INFO("differences give " << found << ", backward gives " << from_backward);
      REQUIRE(std::abs(found - from_backward) <= 1e-6 * scale);
    };
    Values direction(inputs[input].size());
    for (int i = 0; i < 3; ++i) {
      for (double& value : direction) value = (engine() & 1) != 0 ? 1 : -1;
      check(direction, norm);
    }
    std::ranges::fill(direction, 0);
    for (int i = 0; i < 8; ++i) {
      const size_t element = engine() % direction.size();
      direction[element] = 1;
      check(direction, largest);
      direction[element] = 0;
    }
  }
}

}  // namespace

void check_gradients(const GradientCase& c) {
  static FirstOfTest first;
  std::optional<WithinTurn> within_turn;
  const bool is_first = first();
  if (in_turn(c.label)) {
    within_turn.emplace();
  } else if (!is_first) {
    return;
  }
  INFO("gradients of " << c.label);
  std::vector<Values> inputs, gradients;
  for (const OpInput& input : c.inputs) inputs.push_back(input.tensor.values);

  OpCase op_case;
  op_case.label = c.label;
  op_case.tolerance = c.tolerance;
  op_case.inputs = c.inputs;
  {
    Graph graph;  // to learn the results' shapes
    std::vector<ValueId> ids;
    for (const OpInput& input : c.inputs)
      ids.push_back(graph.input("x", input.tensor.shape, input.tensor.dtype));
    uint64_t seed = gradient_seed;
    for (const ValueId id : c.build(graph, ids)) {
      const Value& value = graph.value(id);
      op_case.inputs.push_back({random_tensor(value.shape, value.dtype, seed++)});
      gradients.push_back(op_case.inputs.back().tensor.values);
    }
  }
  std::vector<Values> expected = c.backward(inputs, gradients);
  REQUIRE(expected.size() == inputs.size());
  check_reference(c, inputs, gradients, expected);

  std::vector<size_t> asked;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].empty()) continue;
    REQUIRE(c.inputs[i].role == Role::input);
    REQUIRE(c.inputs[i].tensor.dtype != DType::u32);
    asked.push_back(i);
    op_case.expected.push_back(std::move(expected[i]));
  }
  REQUIRE_FALSE(asked.empty());
  op_case.build = [&](Graph& graph, std::span<const ValueId> ids) {
    const size_t count = c.inputs.size();
    const std::vector<ValueId> results = c.build(graph, ids.first(count));
    std::vector<GradientSeed> seeds;
    for (size_t i = 0; i < results.size(); ++i) seeds.push_back({results[i], ids[count + i]});
    std::vector<ValueId> wrt;
    for (const size_t i : asked) wrt.push_back(ids[i]);
    std::vector<ValueId> found = add_gradients(graph, seeds, wrt);
    std::vector<ValueId> taken;
    for (size_t i = 0; i < found.size(); ++i) {
      INFO("input " << asked[i]);
      REQUIRE(found[i]);
      CHECK(graph.value(found[i]).shape == graph.value(wrt[i]).shape);
      CHECK(graph.value(found[i]).dtype == graph.value(wrt[i]).dtype);
      // A gradient may be an input, or that of two values: neither can be an output as it is.
      if (graph.value(found[i]).role != Role::intermediate || std::ranges::count(taken, found[i]) > 0)
        found[i] = scale(graph, "copy" + std::to_string(i), found[i], 1);
      taken.push_back(found[i]);
    }
    return found;
  };

  std::vector<const OpDef*> ops;
  const auto graph = reference::graph_of(op_case);
  for (const Node& node : graph->nodes()) {
    if (std::ranges::find(ops, node.op) == ops.end()) ops.push_back(node.op);
  }
  check_chosen(op_case);
  for (const OpDef* op : ops) {
    if (std::ranges::find(looked_at_elsewhere, op) == looked_at_elsewhere.end()) check_op(*op, op_case);
  }
}

}  // namespace vitrine::test
