#include "runtime/ops/elementwise/unary.h"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "tests/support/op_test.h"
#include "tests/support/reference.h"

namespace vitrine {
namespace {

using test::HostTensor;

constexpr std::array activations{Activation::gelu, Activation::gelu_tanh, Activation::gelu_quick,
                                 Activation::silu, Activation::tanh,      Activation::relu};

test::OpCase activation_case(Activation activation, HostTensor x) {
  test::OpCase result;
  result.label =
      std::string(name_of(activation)) + " of " + x.shape.to_string() + " " + std::string(name_of(x.dtype));
  result.expected = {reference::activate(activation, x.values)};
  result.inputs = {{std::move(x)}};
  result.build = [=](Graph& graph, std::span<const ValueId> in) {
    return std::vector{activate(graph, "y", in[0], activation)};
  };
  return result;
}

TEST_CASE("activations match the float64 reference in every shape") {
  for (const Activation activation : activations) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      for (const Shape& shape : {Shape{1}, Shape{3}, Shape{5, 197}, Shape{2, 50, 384}, Shape{4099}}) {
        // Few elements are kept from the tail, where f16 has only subnormal numbers left, and ReLU none.
        const double low = shape.elements() < 4 ? 1 : -6;
        test::check_op(op_unary, activation_case(activation, test::random_tensor(shape, dtype, 1, low, 6)));
      }
    }
  }
}

TEST_CASE("activations keep their precision where they are small") {
  for (const Activation activation : activations) {
    for (const auto& [low, high] : {std::pair{-1e-3, 1e-3}, {0.3, 0.4}, {-1.3, -0.5}, {-4.0, -2.5}}) {
      if (activation == Activation::relu && high < 0) continue;  // 0 everywhere
      test::check_op(op_unary,
                     activation_case(activation, test::random_tensor({9973}, DType::f32, 1, low, high)));
    }
  }
}

TEST_CASE("activations treat huge, infinite and NaN arguments as the formulas do") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Activation activation : activations) {
      for (const double magnitude : {1.0, 9.5, 50.0, 1000.0, dtype == DType::f32 ? 3e38 : 6e4}) {
        HostTensor x{{7}, dtype, {inf, -inf, nan, magnitude, -magnitude, 0.0, -0.0}};
        for (double& value : x.values) value = test::round_to(dtype, value);
        test::OpCase extreme = activation_case(activation, std::move(x));
        extreme.allow_nonfinite = true;
        test::check_op(op_unary, extreme);
      }
    }
  }
}

TEST_CASE("scale multiplies") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Shape& shape : {Shape{1}, Shape{7}, Shape{3, 197, 48}}) {
      test::OpCase scaled;
      scaled.label = shape.to_string();
      scaled.inputs = {{test::random_tensor(shape, dtype, 1)}};
      scaled.expected = {reference::scale(scaled.inputs[0].tensor.values, -0.125)};
      scaled.exact = dtype == DType::f32;
      scaled.build = [](Graph& graph, std::span<const ValueId> in) {
        return std::vector{scale(graph, "y", in[0], -0.125)};
      };
      test::check_op(op_unary, scaled);
    }
  }
}

TEST_CASE("unary functions may overwrite their input, and none is the input itself") {
  test::OpCase chain =
      activation_case(Activation::silu, test::random_tensor({5, 1021}, DType::f32, 1, -6, 6));
  chain.expected = {
      reference::activate(Activation::tanh, reference::scale(reference::scale(chain.expected[0], 3.0), 0.5))};
  chain.build = [](Graph& graph, std::span<const ValueId> in) {
    ValueId x = activate(graph, "silu", in[0], Activation::silu);
    x = scale(graph, "triple", x, 3.0);
    x = activate(graph, "none", x, Activation::none);
    x = scale(graph, "half", x, 0.5);
    return std::vector{activate(graph, "tanh", x, Activation::tanh)};
  };
  test::check_op(op_unary, chain);
}

}  // namespace
}  // namespace vitrine
