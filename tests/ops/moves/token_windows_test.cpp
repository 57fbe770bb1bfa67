#include "runtime/ops/moves/token_windows.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "runtime/ops/moves/reference_grid.h"
#include "runtime/util/error.h"
#include "tests/support/op_test.h"

namespace vitrine {
namespace {

using test::HostTensor;

test::OpCase op_case(const TokenGrid& grid, bool merge, uint64_t batch, HostTensor x) {
  const uint64_t columns = x.shape[2];
  test::OpCase result;
  result.label = std::string(merge ? "merge " : "partition ") + x.shape.to_string() + " " +
                 std::string(name_of(x.dtype)) + ", windows of " + std::to_string(grid.window) + " in " +
                 std::to_string(grid.height) + " x " + std::to_string(grid.width);
  result.expected = {merge ? reference::merge_windows(x.values, batch, columns, grid)
                           : reference::partition_windows(x.values, batch, columns, grid)};
  result.inputs = {{std::move(x)}};
  result.exact = true;
  result.build = [=](Graph& graph, std::span<const ValueId> in) {
    return std::vector{merge ? merge_windows(graph, "y", in[0], grid)
                             : partition_windows(graph, "y", in[0], grid)};
  };
  return result;
}

TEST_CASE("token_windows matches the float64 reference") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const TokenGrid& grid : {TokenGrid{1, 1, 1}, TokenGrid{7, 5, 3}, TokenGrid{3, 11, 5},
                                  TokenGrid{14, 14, 14}, TokenGrid{2, 3, 7}, TokenGrid{17, 13, 4}}) {
      for (const uint64_t columns : {1, 13, 16, 48}) {
        for (const uint64_t batch : {1, 3}) {
          if (grid.height * batch * columns < 2) continue;  // one number proves nothing
          const uint64_t side = grid.window * grid.window;
          test::check_op(
              op_token_windows,
              op_case(grid, false, batch,
                      test::random_tensor({batch, grid.height * grid.width, columns}, dtype, 1, -4, 4)));
          test::check_op(
              op_token_windows,
              op_case(grid, true, batch,
                      test::random_tensor({batch * grid.windows(), side, columns}, dtype, 2, -4, 4)));
        }
      }
    }
  }
}

TEST_CASE("token_windows keeps NaN and infinity") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const bool merge : {false, true}) {
    test::OpCase nonfinite =
        op_case({2, 2, 2}, merge, 1, {{1, 4, 2}, DType::f32, {nan, 1, inf, -inf, 1, nan, 0, 1}});
    nonfinite.allow_nonfinite = true;
    test::check_op(op_token_windows, nonfinite);
  }
}

TEST_CASE("token_windows refuses what is no grid and no windows of one") {
  Graph graph;
  const ValueId x = graph.input("x", {2, 6, 8}), windows = graph.input("windows", {4, 4, 8});
  CHECK_THROWS_AS(partition_windows(graph, "y", x, {3, 3, 2}), Error);
  CHECK_THROWS_AS(partition_windows(graph, "y", x, {2, 3, 0}), Error);
  CHECK_THROWS_AS(merge_windows(graph, "y", windows, {2, 5, 2}), Error);
  CHECK_NOTHROW(partition_windows(graph, "y", x, {2, 3, 2}));
  CHECK_NOTHROW(merge_windows(graph, "y", windows, {2, 3, 2}));
}

}  // namespace
}  // namespace vitrine
