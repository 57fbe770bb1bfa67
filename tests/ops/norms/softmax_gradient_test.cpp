#include "runtime/ops/norms/softmax_gradient.h"

#include <catch2/catch_test_macros.hpp>

#include "runtime/check/reference_gradients.h"
#include "runtime/ops/norms/softmax.h"
#include "runtime/util/error.h"
#include "tests/support/gradient_test.h"

namespace vitrine {
namespace {

test::OpCase op_case(const Shape& shape, DType dtype) {
  test::HostTensor y = test::random_tensor(shape, dtype, 1, -4, 4);
  y.values = reference::softmax(y.values, shape[-1]);
  for (double& value : y.values) value = test::round_to(dtype, value);
  test::OpCase c;
  c.label = shape.to_string() + " " + std::string(name_of(dtype));
  c.inputs = {{test::random_tensor(shape, dtype, 2)}, {y}};
  c.expected = {reference::softmax_gradient(c.inputs[0].tensor.values, y.values, shape[-1])};
  c.build = [](Graph& graph, std::span<const ValueId> in) {
    return std::vector{softmax_gradient(graph, "dx", in[0], in[1])};
  };
  return c;
}

void check(const Shape& shape, DType dtype) { test::check_op(op_softmax_gradient, op_case(shape, dtype)); }

TEST_CASE("the gradient of softmax matches the float64 reference") {
  for (const uint64_t width : {2, 3, 8, 48, 52, 197, 1000, 1370, 4099}) check({5, width}, DType::f32);
  for (const uint64_t rows : {1, 2, 50, 197}) check({rows, 197}, DType::f32);
  check({2, 3, 17, 20}, DType::f32);
  check({10}, DType::f32);
  check({70001, 3}, DType::f32);
  for (const Shape& shape : {Shape{5, 3}, Shape{9, 52}, Shape{11, 72}, Shape{197, 197}, Shape{3, 3080}})
    check(shape, DType::f16);
}

TEST_CASE("the gradient of softmax makes NaN of a row with a NaN, wherever it stands") {
  for (const uint64_t width : {197, 52, 1032}) {
    test::check_nan(op_softmax_gradient, op_case({5, width}, DType::f32),
                    [=](auto in) { return test::Results{reference::softmax_gradient(in[0], in[1], width)}; });
  }
}

TEST_CASE("softmax has a derivative") {
  for (const Shape& shape : {Shape{5, 7}, Shape{2, 3, 52}}) {
    test::GradientCase c;
    c.label = shape.to_string();
    c.inputs = {{test::random_tensor(shape, DType::f32, 1, -3, 3)}};
    c.build = [](Graph& graph, std::span<const ValueId> in) {
      return std::vector{softmax(graph, "y", in[0])};
    };
    const uint64_t width = shape[-1];
    c.forward = [width](std::span<const test::Values> in) {
      return test::Results{reference::softmax(in[0], width)};
    };
    c.backward = [width](std::span<const test::Values> in, std::span<const test::Values> dy) {
      return test::Results{reference::softmax_gradient(dy[0], reference::softmax(in[0], width), width)};
    };
    test::check_gradients(c);
  }
}

TEST_CASE("the gradient of softmax refuses different shapes") {
  Graph graph;
  CHECK_THROWS_AS(softmax_gradient(graph, "dx", graph.input("dy", {2, 3}), graph.input("y", {3, 2})), Error);
}

}  // namespace
}  // namespace vitrine
