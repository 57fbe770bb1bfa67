#include "runtime/ops/elementwise/activation_gradient.h"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "runtime/check/reference_gradients.h"
#include "runtime/ops/elementwise/unary.h"
#include "tests/support/gradient_test.h"

namespace vitrine {
namespace {

using test::HostTensor;

constexpr std::array activations{Activation::gelu, Activation::gelu_tanh, Activation::gelu_quick,
                                 Activation::silu, Activation::tanh,      Activation::relu};

test::OpCase op_case(Activation activation, HostTensor dy, HostTensor x) {
  test::OpCase result;
  result.label =
      std::string(name_of(activation)) + " of " + x.shape.to_string() + " " + std::string(name_of(x.dtype));
  result.expected = {reference::activation_gradient(activation, dy.values, x.values)};
  result.inputs = {{std::move(dy)}, {std::move(x)}};
  result.build = [=](Graph& graph, std::span<const ValueId> in) {
    return std::vector{activation_gradient(graph, "dx", in[0], in[1], activation)};
  };
  return result;
}

TEST_CASE("derivatives of activations match the float64 reference in every shape") {
  for (const Activation activation : activations) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      for (const Shape& shape : {Shape{1}, Shape{3}, Shape{5, 197}, Shape{2, 50, 384}, Shape{4099}}) {
        const double low = shape.elements() < 4 ? 1 : -6;
        test::check_op(op_activation_gradient, op_case(activation, test::random_tensor(shape, dtype, 2),
                                                       test::random_tensor(shape, dtype, 1, low, 6)));
      }
    }
  }
}

TEST_CASE("derivatives of activations keep their precision where they are small") {
  for (const Activation activation : activations) {
    // Not around -0.75, where that of GELU crosses zero.
    for (const auto& [low, high] :
         {std::pair{-1e-3, 1e-3}, {0.3, 0.4}, {1.2, 1.9}, {-4.0, -2.5}, {6.0, 8.0}}) {
      if (activation == Activation::relu && high < 0) continue;  // 0 everywhere
      test::check_op(op_activation_gradient, op_case(activation, test::random_tensor({9973}, DType::f32, 2),
                                                     test::random_tensor({9973}, DType::f32, 1, low, high)));
    }
  }
}

TEST_CASE("derivatives of activations treat huge, infinite and NaN arguments as the formulas do") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Activation activation : activations) {
      for (const double magnitude : {1.0, 9.5, 50.0, 1000.0, dtype == DType::f32 ? 3e38 : 6e4}) {
        HostTensor x{{8}, dtype, {inf, -inf, nan, magnitude, -magnitude, 0.0, -0.0, 0.5}};
        for (double& value : x.values) value = test::round_to(dtype, value);
        HostTensor dy = test::random_tensor({8}, dtype, 1);
        dy.values[7] = nan;
        test::OpCase extreme = op_case(activation, std::move(dy), std::move(x));
        extreme.allow_nonfinite = true;
        test::check_op(op_activation_gradient, extreme);
      }
    }
  }
}

TEST_CASE("activate and scale have derivatives") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Activation activation : activations) {
      test::GradientCase c;
      c.label = std::string(name_of(activation)) + " " + std::string(name_of(dtype));
      c.inputs = {{test::random_tensor({7, 43}, dtype, 1, -4, 4)}};
      c.build = [=](Graph& graph, std::span<const ValueId> in) {
        return std::vector{activate(graph, "y", in[0], activation)};
      };
      c.forward = [=](std::span<const test::Values> in) {
        return test::Results{reference::activate(activation, in[0])};
      };
      c.backward = [=](std::span<const test::Values> in, std::span<const test::Values> dy) {
        return test::Results{reference::activation_gradient(activation, dy[0], in[0])};
      };
      test::check_gradients(c);
    }
    test::GradientCase c;
    c.label = "scale " + std::string(name_of(dtype));
    c.inputs = {{test::random_tensor({7, 43}, dtype, 1)}};
    c.build = [](Graph& graph, std::span<const ValueId> in) {
      return std::vector{scale(graph, "y", in[0], -2.5)};
    };
    c.forward = [](std::span<const test::Values> in) { return test::Results{reference::scale(in[0], -2.5)}; };
    c.backward = [](std::span<const test::Values>, std::span<const test::Values> dy) {
      return test::Results{reference::scale(dy[0], -2.5)};
    };
    test::check_gradients(c);
  }
}

}  // namespace
}  // namespace vitrine
