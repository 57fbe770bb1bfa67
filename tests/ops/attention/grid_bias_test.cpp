#include "runtime/ops/attention/grid_bias.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "runtime/ops/moves/reference_grid.h"
#include "runtime/util/error.h"
#include "tests/support/op_test.h"

namespace vitrine {
namespace {

using test::HostTensor;

test::OpCase op_case(const GridBiasOptions& o, HostTensor q, HostTensor rows, HostTensor columns) {
  test::OpCase result;
  result.label = q.shape.to_string() + " " + std::string(name_of(q.dtype)) + ", " + std::to_string(o.height) +
                 " x " + std::to_string(o.width);
  result.expected = {reference::grid_bias(q.values, q.shape, rows.values, columns.values, o)};
  result.inputs = {{std::move(q)}, {std::move(rows)}, {std::move(columns)}};
  result.build = [=](Graph& graph, std::span<const ValueId> in) {
    return std::vector{grid_bias(graph, "y", in[0], in[1], in[2], o)};
  };
  return result;
}

test::OpCase random_case(const GridBiasOptions& o, DType dtype, uint64_t batch, uint64_t behind) {
  const uint64_t width = o.q_offset + o.heads * o.key_width + behind;
  return op_case(o, test::random_tensor({batch, o.height * o.width, width}, dtype, 1, -2, 2),
                 test::random_tensor({2 * o.height - 1, o.key_width}, DType::f32, 2, -1, 1),
                 test::random_tensor({2 * o.width - 1, o.key_width}, DType::f32, 3, -1, 1));
}

TEST_CASE("grid_bias matches the float64 reference") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    test::check_op(op_grid_bias, random_case({1, 1, 0, 1, 1}, dtype, 3, 0));
    test::check_op(op_grid_bias, random_case({3, 5, 0, 1, 7}, dtype, 2, 1));
    test::check_op(op_grid_bias, random_case({2, 13, 11, 5, 1}, dtype, 1, 3));
    test::check_op(op_grid_bias, random_case({12, 64, 0, 14, 14}, dtype, 2, 2 * 12 * 64));
    test::check_op(op_grid_bias, random_case({3, 80, 7, 11, 17}, dtype, 1, 0));
  }
}

TEST_CASE("grid_bias keeps NaN and infinity where they are") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  test::OpCase nonfinite =
      op_case({1, 2, 0, 2, 2}, {{1, 4, 2}, DType::f32, {nan, 1, 2, inf, 1, 1, 3, 4}},
              {{3, 2}, DType::f32, {1, 2, 3, 4, 5, 6}}, {{3, 2}, DType::f32, {1, 1, 2, 3, 2, 1}});
  nonfinite.allow_nonfinite = true;
  test::check_op(op_grid_bias, nonfinite);
}

TEST_CASE("grid_bias refuses tables of another grid and queries of other tokens") {
  Graph graph;
  const ValueId q = graph.input("q", {1, 6, 8}), rows = graph.input("rows", {3, 4}),
                columns = graph.input("columns", {5, 4});
  CHECK_THROWS_AS(grid_bias(graph, "y", q, columns, rows, {2, 4, 0, 2, 3}), Error);
  CHECK_THROWS_AS(grid_bias(graph, "y", q, rows, columns, {2, 4, 1, 2, 3}), Error);
  CHECK_THROWS_AS(grid_bias(graph, "y", q, rows, columns, {2, 4, 0, 3, 3}), Error);
  CHECK_NOTHROW(grid_bias(graph, "y", q, rows, columns, {2, 4, 0, 2, 3}));
}

}  // namespace
}  // namespace vitrine
