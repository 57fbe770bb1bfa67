// pad and reshape, which only derivatives need.
#include "runtime/ops/moves/pad.h"

#include <catch2/catch_test_macros.hpp>

#include "runtime/check/reference_gradients.h"
#include "runtime/ops/moves/reshape.h"
#include "runtime/util/error.h"
#include "tests/support/gradient_test.h"

namespace vitrine {
namespace {

using test::HostTensor;

void check_pad(const Shape& shape, DType dtype, int axis, uint64_t begin, uint64_t size) {
  HostTensor x =
      test::random_tensor(shape, dtype, 1, dtype == DType::u32 ? 1 : -1, dtype == DType::u32 ? 1e9 : 1);
  test::OpCase c;
  c.label = shape.to_string() + " along " + std::to_string(axis) + " at " + std::to_string(begin) + " of " +
            std::to_string(size);
  c.exact = true;
  c.expected = {
      reference::pad(x.values, shape, axis < 0 ? axis + static_cast<int>(shape.rank()) : axis, begin, size)};
  c.inputs = {{std::move(x)}};
  c.build = [=](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{pad(graph, "y", ids[0], axis, begin, size)};
  };
  test::check_op(op_pad, c);
}

TEST_CASE("pad puts zeros around a tensor") {
  for (const DType dtype : {DType::f32, DType::f16, DType::u32}) {
    check_pad({3, 5, 7}, dtype, 0, 2, 6);
    check_pad({3, 5, 7}, dtype, 1, 0, 6);
    check_pad({3, 5, 7}, dtype, 1, 1, 6);
    check_pad({3, 5, 7}, dtype, 2, 4, 11);
    check_pad({3, 5, 7}, dtype, -1, 4, 197);
    check_pad({3, 5, 7}, dtype, 1, 0, 5);
    check_pad({5}, dtype, 0, 1021 - 5, 1021);
  }
  check_pad({128, 1, 8}, DType::f32, 1, 0, 50);
  check_pad({1, 1}, DType::f32, 0, 65537, 70001);
}

TEST_CASE("pad refuses what does not fit") {
  Graph graph;
  const ValueId x = graph.input("x", {3, 5});
  CHECK_THROWS_AS(pad(graph, "y", x, 2, 0, 9), Error);
  CHECK_THROWS_AS(pad(graph, "y", x, 0, 0, 2), Error);
  CHECK_THROWS_AS(pad(graph, "y", x, 0, 2, 4), Error);
}

void check_reshape(const Shape& from, const Shape& to, DType dtype) {
  HostTensor x = test::random_tensor(from, dtype, 1);
  test::OpCase c;
  c.label = from.to_string() + " to " + to.to_string();
  c.exact = true;
  c.expected = {x.values};
  c.inputs = {{std::move(x)}};
  c.build = [=](Graph& graph, std::span<const ValueId> ids) {
    const ValueId y = reshape(graph, "y", ids[0], to);
    CHECK(graph.value(y).shape == to);
    return std::vector{y};
  };
  test::check_op(op_reshape, c);
}

TEST_CASE("reshape changes the shape and nothing else") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    check_reshape({7, 3, 5, 4}, {7, 60}, dtype);
    check_reshape({420}, {2, 3, 5, 7, 2}, dtype);
    check_reshape({70001, 2}, {2, 70001}, dtype);
  }
  Graph graph;
  const ValueId x = graph.input("x", {3, 5});
  CHECK(reshape(graph, "y", x, {3, 5}) == x);
  CHECK_THROWS_AS(reshape(graph, "y", x, {3, 6}), Error);
}

TEST_CASE("the derivative of reshape") {
  test::GradientCase c;
  c.label = "reshape";
  c.inputs = {{test::random_tensor({7, 3, 5}, DType::f32, 1)}};
  c.build = [](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{reshape(graph, "y", ids[0], {21, 5})};
  };
  c.forward = [](std::span<const test::Values> in) { return test::Results{in[0]}; };
  c.backward = [](std::span<const test::Values>, std::span<const test::Values> dy) {
    return test::Results{dy[0]};
  };
  test::check_gradients(c);
}

}  // namespace
}  // namespace vitrine
