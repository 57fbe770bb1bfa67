#include "runtime/ops/moves/sum_rows.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "runtime/check/reference_gradients.h"
#include "runtime/util/error.h"
#include "tests/support/op_test.h"

namespace vitrine {
namespace {

using test::HostTensor;

test::OpCase sum_case(HostTensor x, size_t kept = 1) {
  test::OpCase result;
  result.label = x.shape.to_string() + " " + std::string(name_of(x.dtype));
  const Shape shape(x.shape.dims().last(kept));
  result.expected = {reference::sum_rows(x.values, shape.elements())};
  result.inputs = {{std::move(x)}};
  result.build = [kept](Graph& graph, std::span<const ValueId> in) {
    return std::vector{sum_rows(graph, "y", in[0], kept)};
  };
  return result;
}

test::OpCase product_case(HostTensor a, HostTensor b, size_t kept = 1) {
  test::OpCase result = sum_case(a, kept);
  result.label = "products of " + result.label;
  const Shape shape(a.shape.dims().last(kept));
  result.expected = {reference::sum_rows(reference::multiply(a.values, b.values), shape.elements())};
  result.inputs = {{std::move(a)}, {std::move(b)}};
  result.build = [kept](Graph& graph, std::span<const ValueId> in) {
    return std::vector{sum_products(graph, "y", in[0], in[1], kept)};
  };
  return result;
}

TEST_CASE("sums of rows match the float64 reference") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Shape& shape :
         {Shape{1, 2}, Shape{3, 1}, Shape{17}, Shape{64, 31}, Shape{65, 8}, Shape{129, 5}, Shape{197, 192},
          Shape{2, 197, 48}, Shape{6400, 24}, Shape{13, 50, 7, 3}}) {
      test::check_op(op_sum_rows, sum_case(test::random_tensor(shape, dtype, 1)));
      test::check_op(op_sum_rows, product_case(test::random_tensor(shape, dtype, 1),
                                               test::random_tensor(shape, dtype, 2)));
    }
  }
}

TEST_CASE("sums keep as many dimensions as asked") {
  for (const size_t kept : {1u, 2u, 3u}) {
    test::check_op(op_sum_rows, sum_case(test::random_tensor({131, 11, 13}, DType::f32, 1), kept));
    test::check_op(op_sum_rows, product_case(test::random_tensor({5, 11, 13}, DType::f32, 1),
                                             test::random_tensor({5, 11, 13}, DType::f32, 2), kept));
  }
}

TEST_CASE("sums of many rows keep their precision") {
  for (const double low : {-1.0, 0.0, 0.9}) {
    test::check_op(op_sum_rows, sum_case(test::random_tensor({100003, 3}, DType::f32, 1, low, 1)));
    test::check_op(op_sum_rows, product_case(test::random_tensor({6400, 32}, DType::f32, 1, low, 1),
                                             test::random_tensor({6400, 32}, DType::f32, 2, low, 1)));
  }
}

TEST_CASE("sums of rows keep NaN and infinity in their columns") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  HostTensor x = test::random_tensor({300, 7}, DType::f32, 1);
  x.values[299 * 7 + 1] = inf;
  x.values[77 * 7 + 2] = std::numeric_limits<double>::quiet_NaN();
  x.values[10 * 7 + 4] = inf;
  x.values[11 * 7 + 4] = -inf;
  test::OpCase c = sum_case(x);
  c.allow_nonfinite = true;
  test::check_op(op_sum_rows, c);
}

TEST_CASE("sums of rows refuse what they can't do") {
  Graph graph;
  const ValueId x = graph.input("x", {4, 3}), y = graph.input("y", {3, 4});
  CHECK_THROWS_AS(sum_rows(graph, "sum", x, 3), Error);
  CHECK_THROWS_AS(sum_rows(graph, "sum", x, 0), Error);
  CHECK_THROWS_AS(sum_products(graph, "sum", x, y), Error);
}

}  // namespace
}  // namespace vitrine
