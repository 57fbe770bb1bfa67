#include "runtime/ops/maps/neighbourhoods.h"

#include <catch2/catch_test_macros.hpp>

#include "runtime/ops/maps/reference_maps.h"
#include "runtime/util/error.h"
#include "tests/support/op_test.h"

namespace vitrine {
namespace {

using test::HostTensor;

std::string text_of(const Windows& w) {
  return std::to_string(w.height) + "x" + std::to_string(w.width) + " by " + std::to_string(w.kernel_height) +
         "x" + std::to_string(w.kernel_width) + " from " + std::to_string(w.top) + "," +
         std::to_string(w.left);
}

// Squares and not, one pixel alone, padding on one side alone, and more of it than of the map.
std::vector<Windows> all_windows() {
  return {same_windows(7, 11, 3, 2),      same_windows(8, 6, 7, 2),       padded_windows(13, 9, 3, 1, 1),
          padded_windows(8, 12, 4, 4, 0), padded_windows(5, 5, 1, 2, 0),  covering_windows(5, 9, 2, 2),
          padded_windows(2, 2, 7, 1, 3),  {6, 5, 2, 3, 1, 2, 1, 0, 4, 2}, padded_windows(1, 1, 1, 1, 0)};
}

void check(const Windows& windows, uint64_t channels, bool planar, DType in, DType out) {
  const Shape shape = planar ? Shape{2, channels, windows.height, windows.width}
                             : Shape{2, windows.height * windows.width, channels};
  test::OpCase op_case;
  op_case.label = text_of(windows) + " of " + std::to_string(channels) + (planar ? " planar " : " ") +
                  std::string(name_of(in)) + " to " + std::string(name_of(out));
  op_case.exact = in == out || out == DType::f32;  // drivers round to f16 as they like
  op_case.inputs = {{test::random_tensor(shape, in, 1)}};
  op_case.expected = {reference::neighbourhoods(op_case.inputs[0].tensor.values, windows, channels, planar)};
  op_case.build = [=](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{neighbourhoods(graph, "y", ids[0], windows, {.planar = planar, .out = out})};
  };
  test::check_op(op_neighbourhoods, op_case);
}

TEST_CASE("neighbourhoods gives each window's pixels as a row") {
  for (const Windows& windows : all_windows()) {
    check(windows, 3, true, DType::f32, DType::f32);
    for (const uint64_t channels : {3, 8}) check(windows, channels, false, DType::f32, DType::f32);
  }
  for (const auto& [in, out] : {std::pair(DType::f32, DType::f16), std::pair(DType::f16, DType::f16),
                                std::pair(DType::f16, DType::f32)}) {
    check(same_windows(7, 11, 3, 2), 1, true, in, out);
    for (const uint64_t channels : {7, 20}) check(same_windows(7, 11, 3, 2), channels, false, in, out);
  }
}

TEST_CASE("neighbourhoods and a product are a convolution") {
  for (const Windows& windows : all_windows()) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      constexpr uint64_t channels = 6, outputs = 13;
      const uint64_t depth = windows.kernel_height * windows.kernel_width * channels;
      test::OpCase op_case;
      op_case.label = text_of(windows);
      op_case.inputs = {{test::random_tensor({3, windows.height * windows.width, channels}, dtype, 1)},
                        {test::random_tensor({outputs, depth}, dtype, 2), Role::constant}};
      op_case.expected = {reference::convolution(
          op_case.inputs[0].tensor.values, op_case.inputs[1].tensor.values, windows, channels, outputs)};
      op_case.build = [=](Graph& graph, std::span<const ValueId> ids) {
        return std::vector{convolution(graph, "y", ids[0], ids[1], windows)};
      };
      test::check_op(op_matmul, op_case);
    }
  }
}

TEST_CASE("windows are counted as PyTorch and TensorFlow count them") {
  CHECK(padded_windows(224, 224, 3, 2, 1) == Windows{224, 224, 3, 3, 2, 2, 1, 1, 112, 112});
  // An odd number of pixels more than there are: the one more is behind.
  CHECK(same_windows(224, 225, 7, 2) == Windows{224, 225, 7, 7, 2, 2, 2, 3, 112, 113});
  CHECK(same_windows(56, 56, 1, 2) == Windows{56, 56, 1, 1, 2, 2, 0, 0, 28, 28});
  CHECK(covering_windows(7, 8, 2, 2) == Windows{7, 8, 2, 2, 2, 2, 0, 0, 4, 4});
  CHECK(padded_windows(9, 4, 1, 1, 0).are_pixels());
  CHECK_FALSE(padded_windows(9, 4, 1, 2, 0).are_pixels());
}

TEST_CASE("neighbourhoods keeps NaN and infinity where they are") {
  const Windows windows = same_windows(5, 7, 3, 2);
  for (const uint64_t channels : {3, 4}) {
    test::OpCase op_case;
    op_case.label = "5x7 of " + std::to_string(channels);
    op_case.exact = true;
    op_case.inputs = {{test::random_tensor({2, 35, channels}, DType::f32, 1)}};
    op_case.build = [=](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{neighbourhoods(graph, "y", ids[0], windows)};
    };
    test::check_nan(op_neighbourhoods, op_case, [=](std::span<const std::vector<double>> in) {
      return test::Results{reference::neighbourhoods(in[0], windows, channels, false)};
    });
  }
}

TEST_CASE("neighbourhoods refuses windows that see nothing, and maps of another size") {
  Graph graph;
  const ValueId x = graph.input("x", {2, 35, 3});
  CHECK_THROWS_AS(neighbourhoods(graph, "y", x, same_windows(5, 8, 3, 2)), Error);
  CHECK_THROWS_AS(neighbourhoods(graph, "y", x, padded_windows(5, 7, 3, 1, 3)), Error);
  CHECK_THROWS_AS(neighbourhoods(graph, "y", x, padded_windows(5, 7, 9, 1, 0)), Error);
  CHECK_THROWS_AS(neighbourhoods(graph, "y", x, Windows{5, 7, 3, 3, 0, 1, 0, 0, 2, 2}), Error);
  CHECK_THROWS_AS(neighbourhoods(graph, "y", x, same_windows(5, 7, 3, 2), {.planar = true}), Error);
}

}  // namespace
}  // namespace vitrine
