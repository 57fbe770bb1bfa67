#include "runtime/ops/elementwise/binary.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "runtime/check/reference_gradients.h"
#include "runtime/graph/autodiff.h"
#include "runtime/util/error.h"
#include "tests/support/gradient_test.h"

namespace vitrine {
namespace {

using test::HostTensor;

test::OpCase op_case(bool product, HostTensor a, HostTensor b) {
  test::OpCase result;
  result.label = std::string(product ? "multiply " : "add ") + a.shape.to_string() + " " +
                 std::string(name_of(a.dtype)) + " and " + std::string(name_of(b.dtype));
  result.expected = {product ? reference::multiply(a.values, b.values) : reference::add(a.values, b.values)};
  result.inputs = {{std::move(a)}, {std::move(b)}};
  result.build = [=](Graph& graph, std::span<const ValueId> in) {
    return std::vector{product ? multiply(graph, "y", in[0], in[1]) : add(graph, "y", in[0], in[1])};
  };
  return result;
}

TEST_CASE("add and multiply match the float64 reference") {
  for (const bool product : {false, true}) {
    for (const DType a : {DType::f32, DType::f16}) {
      for (const DType b : {DType::f32, DType::f16}) {
        for (const Shape& shape : {Shape{1}, Shape{3}, Shape{5, 197}, Shape{2, 50, 384}, Shape{4099}}) {
          test::check_op(op_binary, op_case(product, test::random_tensor(shape, a, 1),
                                            test::random_tensor(shape, b, 2)));
        }
      }
    }
  }
}

TEST_CASE("mix matches the float64 reference, and has no derivative") {
  for (const double share : {0.0, 1e-4, 0.25, 1.0}) {
    for (const Shape& shape : {Shape{1}, Shape{3}, Shape{4}, Shape{5, 197}, Shape{4099}, Shape{70001}}) {
      test::OpCase c;
      c.label = "mix " + std::to_string(share) + " of " + shape.to_string();
      c.inputs = {{test::random_tensor(shape, DType::f32, 1)}, {test::random_tensor(shape, DType::f32, 2)}};
      reference::Values expected = c.inputs[0].tensor.values;
      for (size_t i = 0; i < expected.size(); ++i) {
        expected[i] += share * (c.inputs[1].tensor.values[i] - expected[i]);
      }
      c.expected = {expected};
      c.build = [share](Graph& graph, std::span<const ValueId> in) {
        return std::vector{mix(graph, "y", in[0], in[1], share)};
      };
      test::check_op(op_binary, c);
    }
  }
  Graph graph;
  const ValueId a = graph.input("a", {4}), b = graph.input("b", {4}), dy = graph.input("dy", {4});
  const GradientSeed seed{mix(graph, "y", a, b, 0.5), dy};
  CHECK_THROWS_AS(add_gradients(graph, {&seed, 1}, {&a, 1}), Error);
}

TEST_CASE("the second tensor repeats where it is the end of the first one's shape") {
  struct Case {
    Shape a, b;
  };
  for (const bool product : {false, true}) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      for (const auto& [a, b] :
           {Case{{5, 197}, {197}}, Case{{2, 50, 7}, {7}}, Case{{3, 11, 13}, {11, 13}}, Case{{1, 77}, {77}},
            Case{{4, 1}, {1}}, Case{{3, 52}, {52}}, Case{{7, 5, 8}, {5, 8}}}) {
        const HostTensor left = test::random_tensor(a, product ? dtype : DType::f32, 1),
                         right = test::random_tensor(b, dtype, 2);
        HostTensor repeated = right;
        repeated.shape = a;
        repeated.values.clear();
        for (uint64_t i = 0; i < a.elements(); ++i)
          repeated.values.push_back(right.values[i % right.values.size()]);
        test::OpCase repeating = op_case(product, left, repeated);
        repeating.label += ", repeating " + b.to_string();
        repeating.inputs[1].tensor = right;
        test::check_op(op_binary, repeating);
      }
    }
  }
}

TEST_CASE("add and multiply keep NaN and infinity") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const bool product : {false, true}) {
    test::OpCase nonfinite = op_case(product, {{6}, DType::f32, {inf, -inf, nan, inf, 1.0, 2.0}},
                                     {{6}, DType::f32, {1.0, inf, 1.0, 0.0, 0.0, nan}});
    nonfinite.allow_nonfinite = true;
    nonfinite.exact = true;
    test::check_op(op_binary, nonfinite);
  }
}

TEST_CASE("add and multiply may overwrite an input, and take the same value twice") {
  const HostTensor a = test::random_tensor({13, 77}, DType::f32, 1),
                   b = test::random_tensor({13, 77}, DType::f32, 2);
  test::OpCase chain = op_case(false, a, b);
  const reference::Values sum = reference::add(a.values, b.values);
  chain.expected = {reference::add(b.values, reference::multiply(reference::add(sum, sum), a.values))};
  chain.build = [](Graph& graph, std::span<const ValueId> in) {
    const ValueId s = add(graph, "sum", in[0], in[1]);
    const ValueId twice = add(graph, "twice", s, s);
    const ValueId product = multiply(graph, "product", twice, in[0]);
    return std::vector{add(graph, "y", in[1], product)};
  };
  test::check_op(op_binary, chain);
}

TEST_CASE("add and multiply have derivatives, of a repeated tensor as a sum") {
  struct Case {
    Shape a, b;
  };
  const auto repeated = [](const test::Values& b, size_t count) {
    test::Values all(count);
    for (size_t i = 0; i < count; ++i) all[i] = b[i % b.size()];
    return all;
  };
  for (const bool product : {false, true}) {
    for (const auto& [a, b] :
         {Case{{5, 43}, {5, 43}}, Case{{5, 43}, {43}}, Case{{2, 71, 7}, {7}}, Case{{3, 11, 13}, {11, 13}}}) {
      for (const DType left : {DType::f32, DType::f16}) {
        for (const DType right : {DType::f32, DType::f16}) {
          test::GradientCase c;
          c.label = std::string(product ? "multiply " : "add ") + a.to_string() + " " +
                    std::string(name_of(left)) + " and " + b.to_string() + " " + std::string(name_of(right));
          c.inputs = {{test::random_tensor(a, left, 1)}, {test::random_tensor(b, right, 2)}};
          c.build = [=](Graph& graph, std::span<const ValueId> in) {
            return std::vector{product ? multiply(graph, "y", in[0], in[1]) : add(graph, "y", in[0], in[1])};
          };
          c.forward = [=](std::span<const test::Values> in) {
            const test::Values wide = repeated(in[1], in[0].size());
            return test::Results{product ? reference::multiply(in[0], wide) : reference::add(in[0], wide)};
          };
          c.backward = [=](std::span<const test::Values> in, std::span<const test::Values> dy) {
            const test::Values wide = repeated(in[1], in[0].size());
            return test::Results{
                product ? reference::multiply(dy[0], wide) : dy[0],
                reference::sum_rows(product ? reference::multiply(dy[0], in[0]) : dy[0], in[1].size())};
          };
          test::check_gradients(c);
        }
      }
    }
  }
}

TEST_CASE("a value that is used twice gets both gradients") {
  test::GradientCase c;
  c.label = "x * x + x";
  c.inputs = {{test::random_tensor({5, 43}, DType::f32, 1)}};
  c.build = [](Graph& graph, std::span<const ValueId> in) {
    return std::vector{add(graph, "y", multiply(graph, "square", in[0], in[0]), in[0])};
  };
  c.forward = [](std::span<const test::Values> in) {
    return test::Results{reference::add(reference::multiply(in[0], in[0]), in[0])};
  };
  c.backward = [](std::span<const test::Values> in, std::span<const test::Values> dy) {
    return test::Results{reference::add(reference::scale(reference::multiply(in[0], dy[0]), 2), dy[0])};
  };
  test::check_gradients(c);
}

TEST_CASE("add refuses different shapes") {
  Graph graph;
  const ValueId a = graph.input("a", {2, 3}), b = graph.input("b", {3, 2});
  CHECK_THROWS_AS(add(graph, "sum", a, b), Error);
  // Only the second one repeats, and only whole dimensions from the end.
  const ValueId row = graph.input("row", {3}), column = graph.input("column", {2});
  CHECK_THROWS_AS(add(graph, "sum", row, a), Error);
  CHECK_THROWS_AS(add(graph, "sum", a, column), Error);
}

}  // namespace
}  // namespace vitrine
