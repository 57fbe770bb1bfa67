#include "runtime/ops/moves/transpose.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "runtime/check/reference_gradients.h"
#include "runtime/util/error.h"
#include "tests/support/gradient_test.h"

namespace vitrine {
namespace {

test::OpCase op_case(test::HostTensor x, bool flat) {
  test::OpCase c;
  c.label = x.shape.to_string() + " " + std::string(name_of(x.dtype)) + (flat ? ", flat" : "");
  const uint64_t rows = flat ? x.shape.rows() : x.shape[-2];
  c.expected = {reference::transpose(x.values, rows, x.shape[-1])};
  c.inputs = {{std::move(x)}};
  c.exact = true;
  c.build = [flat](Graph& graph, std::span<const ValueId> in) {
    return std::vector{flat ? transpose_rows(graph, "y", in[0]) : transpose(graph, "y", in[0])};
  };
  return c;
}

TEST_CASE("transpose turns rows into columns") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Shape& shape :
         {Shape{1, 7}, Shape{7, 1}, Shape{8, 8}, Shape{31, 33}, Shape{64, 65}, Shape{67, 24}, Shape{197, 192},
          Shape{3, 5, 17}, Shape{2, 3, 72, 9}, Shape{5, 64, 8}, Shape{400, 2, 3}}) {
      test::check_op(op_transpose, op_case(test::random_tensor(shape, dtype, 1), false));
      test::check_op(op_transpose, op_case(test::random_tensor(shape, dtype, 1), true));
    }
  }
  test::check_op(op_transpose, op_case(test::random_tensor({19}, DType::f32, 1), true));
}

TEST_CASE("transpose moves NaN and infinity to their places") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    test::HostTensor x = test::random_tensor({9, 11}, dtype, 1);
    x.values[5] = std::numeric_limits<double>::quiet_NaN();
    x.values[98] = std::numeric_limits<double>::infinity();
    test::OpCase c = op_case(x, false);
    c.allow_nonfinite = true;
    test::check_op(op_transpose, c);
  }
}

TEST_CASE("transpose has a derivative") {
  test::GradientCase c;
  c.label = "two matrices";
  c.inputs = {{test::random_tensor({2, 13, 7}, DType::f32, 1)}};
  c.build = [](Graph& graph, std::span<const ValueId> in) {
    return std::vector{transpose(graph, "y", in[0])};
  };
  c.forward = [](std::span<const test::Values> in) {
    return test::Results{reference::transpose(in[0], 13, 7)};
  };
  c.backward = [](std::span<const test::Values>, std::span<const test::Values> dy) {
    return test::Results{reference::transpose(dy[0], 7, 13)};
  };
  test::check_gradients(c);
}

TEST_CASE("transpose refuses a row alone") {
  Graph graph;
  CHECK_THROWS_AS(transpose(graph, "y", graph.input("x", {3})), Error);
}

}  // namespace
}  // namespace vitrine
