#include "runtime/ops/training/clip_scale.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "runtime/check/reference_training.h"
#include "runtime/ops/moves/slice.h"
#include "runtime/util/error.h"
#include "tests/support/op_test.h"

namespace vitrine {
namespace {

using test::HostTensor;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Scale and norm as results of their own: side by side, the larger would hide an error of the other.
test::OpCase op_case(HostTensor x, double max_norm, double scale, double norm) {
  test::OpCase result;
  result.label = x.shape.to_string() + ", at most " + std::to_string(max_norm);
  result.expected = {{scale}, {norm}};
  result.inputs = {{std::move(x)}};
  result.build = [=](Graph& graph, std::span<const ValueId> ids) {
    const ValueId both = clip_scale(graph, "clip", ids[0], max_norm);
    return std::vector{slice(graph, "scale", both, 0, 0, 1), slice(graph, "norm", both, 0, 1, 2)};
  };
  return result;
}

void check(HostTensor x, double max_norm) {
  const reference::ClipScale expected = reference::clip_scale(x.values, max_norm);
  test::check_op(op_clip_scale, op_case(std::move(x), max_norm, expected.scale, expected.norm));
}

TEST_CASE("clip_scale matches the float64 reference at every number of elements") {
  for (const uint64_t count : {1, 2, 3, 4, 5, 7, 255, 256, 257, 1021, 4099, 70001, 1000003})
    check(test::random_tensor({count}, DType::f32, count, -1, 2), 0.5);
  check(test::random_tensor({3, 5, 7}, DType::f32, 1), 0.5);
}

TEST_CASE("clip_scale leaves a norm below the limit alone") {
  const HostTensor x = test::random_tensor({1021}, DType::f32, 1);
  const double norm = reference::clip_scale(x.values, 0).norm;
  for (const double max_norm : {0.999 * norm, 1.001 * norm, 100 * norm, 1e-3 * norm}) check(x, max_norm);
  test::OpCase zeros = op_case(test::filled({37}, DType::f32, 0), 1, 1, 0);
  zeros.exact = true;
  test::check_op(op_clip_scale, zeros);
  check(test::filled({37}, DType::f32, 1e-8), 1e-6);  // here the 1e-6 under the fraction counts
}

TEST_CASE("clip_scale only measures where there is no limit") {
  for (const double max_norm : {0.0, infinity})
    check(test::random_tensor({1021}, DType::f32, 1, 3, 4), max_norm);
}

TEST_CASE("clip_scale sums ten million squares to f32's accuracy") {
  check(test::random_tensor({10000019}, DType::f32, 1, -1e-3, 1e-3), 1e-2);
  // Equal ones, whose rounding errors can't cancel.
  check(test::filled({10000019}, DType::f32, 0.7), 1);
}

TEST_CASE("clip_scale shows NaN and infinity, wherever they stand") {
  for (const double value : {nan, infinity, -infinity, 1e20}) {
    for (const uint64_t at : {0, 1019, 1020}) {
      HostTensor x = test::random_tensor({1021}, DType::f32, 1);
      x.values[at] = test::round_to(DType::f32, value);
      for (const double max_norm : {1.0, 0.0}) {
        test::OpCase nonfinite = op_case(x, max_norm, nan, nan);
        nonfinite.allow_nonfinite = true;
        test::check_op(op_clip_scale, nonfinite);
      }
    }
  }
  HostTensor large = test::random_tensor({70001}, DType::f32, 1);
  large.values[69999] = nan;
  test::OpCase nonfinite = op_case(large, 1, nan, nan);
  nonfinite.allow_nonfinite = true;
  test::check_op(op_clip_scale, nonfinite);
}

TEST_CASE("clip_scale refuses what does not fit") {
  Graph graph;
  CHECK_THROWS_AS(clip_scale(graph, "y", graph.input("x", {4}, DType::f16), 1), Error);
  CHECK_THROWS_AS(clip_scale(graph, "y", graph.input("z", {4}), -1), Error);
}

}  // namespace
}  // namespace vitrine
