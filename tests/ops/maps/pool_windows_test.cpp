#include "runtime/ops/maps/pool_windows.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "runtime/ops/maps/reference_maps.h"
#include "runtime/util/error.h"
#include "tests/support/op_test.h"

namespace vitrine {
namespace {

test::OpCase pool_case(test::HostTensor x, const Windows& windows, bool mean) {
  test::OpCase op_case;
  op_case.label = std::string(mean ? "the mean" : "the largest") + " of " + std::to_string(windows.height) +
                  "x" + std::to_string(windows.width) + " " + x.shape.to_string() + " " +
                  std::string(name_of(x.dtype));
  op_case.expected = {reference::pool_windows(x.values, windows, x.shape[2], mean)};
  op_case.inputs = {{std::move(x)}};
  op_case.exact = !mean;
  op_case.build = [=](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{mean ? mean_of_windows(graph, "y", ids[0], windows)
                            : largest_of_windows(graph, "y", ids[0], windows)};
  };
  return op_case;
}

TEST_CASE("windows are pooled as the float64 reference has it") {
  for (const Windows& windows :
       {padded_windows(13, 9, 3, 2, 1), same_windows(8, 11, 3, 2), covering_windows(7, 5, 2, 2),
        padded_windows(6, 10, 2, 3, 0), padded_windows(3, 2, 5, 1, 2)}) {
    for (const uint64_t channels : {1, 7, 64}) {
      for (const DType dtype : {DType::f32, DType::f16}) {
        for (const bool mean : {false, true}) {
          const Shape shape{3, windows.height * windows.width, channels};
          // None above 0, which is not what padding counts as.
          test::check_op(op_pool_windows,
                         pool_case(test::random_tensor(shape, dtype, 1, -3, -1), windows, mean));
        }
      }
    }
  }
}

TEST_CASE("pooled windows hide no NaN and no infinity") {
  const Windows windows = padded_windows(5, 7, 3, 2, 1);
  for (const uint64_t channels : {3, 4}) {
    for (const bool mean : {false, true}) {
      test::check_nan(op_pool_windows,
                      pool_case(test::random_tensor({2, 35, channels}, DType::f32, 1), windows, mean),
                      [=](std::span<const std::vector<double>> in) {
                        return test::Results{reference::pool_windows(in[0], windows, channels, mean)};
                      });
    }
    test::HostTensor x = test::random_tensor({1, 35, channels}, DType::f32, 1);
    x.values[8] = std::numeric_limits<double>::infinity();
    x.values[50] = -std::numeric_limits<double>::infinity();
    test::OpCase nonfinite = pool_case(std::move(x), windows, true);
    nonfinite.allow_nonfinite = true;
    test::check_op(op_pool_windows, nonfinite);
  }
}

TEST_CASE("pooling refuses windows that see nothing") {
  Graph graph;
  const ValueId x = graph.input("x", {2, 35, 3});
  CHECK_THROWS_AS(largest_of_windows(graph, "y", x, padded_windows(5, 7, 3, 1, 3)), Error);
  CHECK_THROWS_AS(mean_of_windows(graph, "y", x, covering_windows(7, 7, 2, 2)), Error);
}

}  // namespace
}  // namespace vitrine
