// weight_gradient, and with it the derivative of grouped_matmul.
#include "runtime/ops/products/weight_gradient.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "runtime/check/reference_gradients.h"
#include "runtime/ops/products/grouped_matmul.h"
#include "runtime/util/error.h"
#include "tests/support/gradient_test.h"
#include "tests/support/reference_matmul.h"

namespace vitrine {
namespace {

using test::HostTensor;
using test::Results;
using test::Values;

struct Size {
  uint64_t rows, groups, n, k;  // groups 0: none
};

test::OpCase op_case(const Size& size, bool bias, double low = -1, double high = 1) {
  const auto [rows, groups, n, k] = size;
  const uint64_t g = groups ? groups : 1;
  test::OpCase c;
  c.label = std::to_string(rows) + " rows, " + std::to_string(groups) + " groups of " + std::to_string(n) +
            " x " + std::to_string(k);
  c.inputs = {{test::random_tensor({rows, g * n}, DType::f32, 1, low, high)},
              {test::random_tensor({rows, g * k}, DType::f32, 2, low, high)}};
  const Values &dy = c.inputs[0].tensor.values, &x = c.inputs[1].tensor.values;
  c.expected = {reference::weight_gradient(dy, x, g, n, k, rows)};
  if (bias) c.expected.push_back(reference::sum_rows(dy, g * n));
  c.build = [=](Graph& graph, std::span<const ValueId> ids) {
    const WeightGradient found =
        weight_gradient(graph, "dw", ids[0], ids[1], {.groups = groups, .bias = bias});
    CHECK(graph.value(found.weight).shape == (groups ? Shape{groups, n, k} : Shape{n, k}));
    std::vector<ValueId> results{found.weight};
    if (bias) results.push_back(found.bias);
    return results;
  };
  return c;
}

TEST_CASE("weight_gradient matches the float64 reference") {
  for (const bool bias : {false, true}) {
    for (const Size& size :
         {Size{6400, 2, 4, 4}, Size{6272, 0, 8, 16}, Size{128, 0, 10, 8}, Size{1, 0, 4, 8}, Size{7, 3, 5, 3},
          Size{63, 0, 1, 2}, Size{64, 0, 32, 8}, Size{65, 2, 12, 4}, Size{513, 0, 8, 4}, Size{1025, 3, 7, 11},
          Size{197, 12, 8, 8}, Size{50, 1, 3, 1}, Size{511, 0, 4, 4}, Size{1023, 2, 3, 4},
          Size{1100, 4, 2, 15}, Size{1090, 0, 17, 50}, Size{2111, 2, 9, 29}}) {
      test::check_op(op_weight_gradient, op_case(size, bias));
    }
  }
}

TEST_CASE("several groups of weight_gradient share a slice") {
  for (const Size& size :
       {Size{640, 6, 4, 4}, Size{65, 6, 5, 3}, Size{130, 12, 4, 8}, Size{1200, 12, 2, 7}}) {
    const auto [rows, groups, n, k] = size;
    const uint64_t sets = 3, slices = groups / sets;
    test::OpCase c = op_case(size, true);
    const HostTensor x = test::random_tensor({rows, slices * k}, DType::f32, 9);
    Values wide;
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t at = 0; at < groups * k; ++at)
        wide.push_back(x.values[row * slices * k + at % (slices * k)]);
    }
    c.expected[0] = reference::weight_gradient(c.inputs[0].tensor.values, wide, groups, n, k, rows);
    c.inputs[1].tensor = x;
    c.build = [=](Graph& graph, std::span<const ValueId> ids) {
      const WeightGradient found =
          weight_gradient(graph, "dw", ids[0], ids[1], {.groups = groups, .sets = sets, .bias = true});
      return std::vector{found.weight, found.bias};
    };
    test::check_op(op_weight_gradient, c);
  }
}

TEST_CASE("weight_gradient of many rows keeps its precision") {
  for (const double low : {-1.0, 0.0, 0.9}) {
    test::check_op(op_weight_gradient, op_case({100003, 0, 4, 4}, true, low));
    test::check_op(op_weight_gradient, op_case({100003, 0, 3, 5}, true, low));
  }
}

TEST_CASE("weight_gradient keeps NaN and infinity in their places") {
  for (const uint64_t n : {3, 4}) {
    test::OpCase c = op_case({300, 2, n, 4}, true);
    Values& dy = c.inputs[0].tensor.values;
    dy[299 * 2 * n + 1] = std::numeric_limits<double>::quiet_NaN();
    dy[17 * 2 * n + n] = std::numeric_limits<double>::infinity();
    c.expected = {reference::weight_gradient(dy, c.inputs[1].tensor.values, 2, n, 4, 300),
                  reference::sum_rows(dy, 2 * n)};
    c.allow_nonfinite = true;
    test::check_op(op_weight_gradient, c);
  }
}

TEST_CASE("weight_gradient refuses what does not fit") {
  Graph graph;
  const ValueId dy = graph.input("dy", {5, 6}), x = graph.input("x", {5, 8});
  CHECK_THROWS_AS(weight_gradient(graph, "y", dy, x, {.groups = 4}), Error);
  CHECK_THROWS_AS(weight_gradient(graph, "y", dy, graph.input("four", {4, 8})), Error);
  CHECK_THROWS_AS(weight_gradient(graph, "y", dy, graph.input("half", {5, 8}, DType::f16)), Error);
}

void check_grouped(const Shape& x, uint64_t groups, uint64_t n, bool bias) {
  const uint64_t k = x[-1] / groups, rows = x.rows();
  test::GradientCase c;
  c.label = x.to_string() + " in " + std::to_string(groups) + " groups to " + std::to_string(n);
  c.inputs = {{test::random_tensor(x, DType::f32, 1)}, {test::random_tensor({groups, n, k}, DType::f32, 2)}};
  if (bias) c.inputs.push_back({test::random_tensor({groups, n}, DType::f32, 3)});
  c.build = [=](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{grouped_matmul(graph, "y", ids[0], ids[1], bias ? ids[2] : ValueId{})};
  };
  c.forward = [=](std::span<const Values> in) {
    return Results{reference::grouped_matmul(in[0], in[1], bias ? in[2] : Values{}, groups, n, k)};
  };
  c.backward = [=](std::span<const Values> in, std::span<const Values> dy) {
    Values dx(rows * groups * k);
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t g = 0; g < groups; ++g) {
        for (uint64_t i = 0; i < n; ++i) {
          for (uint64_t j = 0; j < k; ++j)
            dx[(row * groups + g) * k + j] += dy[0][(row * groups + g) * n + i] * in[1][(g * n + i) * k + j];
        }
      }
    }
    Results result{dx, reference::weight_gradient(dy[0], in[0], groups, n, k, rows)};
    if (bias) result.push_back(reference::sum_rows(dy[0], groups * n));
    return result;
  };
  test::check_gradients(c);
}

TEST_CASE("the derivative of grouped_matmul") {
  for (const bool bias : {false, true}) {
    check_grouped({2, 50, 8}, 2, 4, bias);
    check_grouped({13, 12}, 3, 5, bias);
    check_grouped({2, 17, 21}, 3, 2, bias);
    check_grouped({1, 9}, 1, 4, bias);
    check_grouped({2, 5, 16}, 2, 12, bias);
  }
}

}  // namespace
}  // namespace vitrine
