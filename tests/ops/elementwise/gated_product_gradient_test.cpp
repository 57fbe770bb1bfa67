#include "runtime/ops/elementwise/gated_product_gradient.h"

#include <catch2/catch_test_macros.hpp>

#include "runtime/check/reference_gradients.h"
#include "runtime/ops/elementwise/gated_product.h"
#include "runtime/util/error.h"
#include "tests/support/gradient_test.h"

namespace vitrine {
namespace {

TEST_CASE("gated_product has a derivative") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Activation activation : {Activation::silu, Activation::gelu}) {
      for (const uint64_t width : {1, 7, 43, 192}) {
        test::GradientCase c;
        c.label = std::string(name_of(activation)) + " of " + std::to_string(width) + " " +
                  std::string(name_of(dtype));
        c.inputs = {{test::random_tensor({3, 5, 2 * width}, dtype, 1, -3, 3)}};
        c.build = [=](Graph& graph, std::span<const ValueId> in) {
          return std::vector{gated_product(graph, "y", in[0], activation)};
        };
        c.forward = [=](std::span<const test::Values> in) {
          return test::Results{reference::gated_product(in[0], width, activation)};
        };
        c.backward = [=](std::span<const test::Values> in, std::span<const test::Values> dy) {
          return test::Results{reference::gated_product_gradient(dy[0], in[0], width, activation)};
        };
        test::check_gradients(c);
      }
    }
  }
}

TEST_CASE("the gradient of gated_product hands on a NaN of each input, wherever it stands") {
  for (const uint64_t width : {43, 48}) {
    for (const Activation activation : {Activation::gelu, Activation::gelu_tanh, Activation::gelu_quick,
                                        Activation::silu, Activation::tanh}) {
      test::OpCase c;
      c.label = name_of(activation);
      c.inputs = {{test::random_tensor({5, width}, DType::f32, 1)},
                  {test::random_tensor({5, 2 * width}, DType::f32, 2, -3, 3)}};
      const test::Reference expect = [=](auto in) {
        return test::Results{reference::gated_product_gradient(in[0], in[1], width, activation)};
      };
      c.expected = expect(std::vector{c.inputs[0].tensor.values, c.inputs[1].tensor.values});
      c.build = [=](Graph& graph, std::span<const ValueId> in) {
        return std::vector{gated_product_gradient(graph, "dx", in[0], in[1], activation)};
      };
      test::check_nan(op_gated_product_gradient, c, expect);
    }
  }
}

TEST_CASE("the gradient of gated_product refuses shapes that don't fit") {
  Graph graph;
  const ValueId dy = graph.input("dy", {2, 3}), x = graph.input("x", {2, 5});
  CHECK_THROWS_AS(gated_product_gradient(graph, "dx", dy, x, Activation::silu), Error);
}

}  // namespace
}  // namespace vitrine
