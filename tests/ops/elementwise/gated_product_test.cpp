#include "runtime/ops/elementwise/gated_product.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "runtime/util/error.h"
#include "tests/support/op_test.h"
#include "tests/support/reference.h"

namespace vitrine {
namespace {

using test::HostTensor;

test::OpCase op_case(Activation activation, HostTensor x) {
  test::OpCase result;
  result.label =
      std::string(name_of(activation)) + " " + x.shape.to_string() + " " + std::string(name_of(x.dtype));
  result.expected = {reference::gated_product(x.values, x.shape[-1] / 2, activation)};
  result.inputs = {{std::move(x)}};
  result.build = [=](Graph& graph, std::span<const ValueId> in) {
    return std::vector{gated_product(graph, "y", in[0], activation)};
  };
  return result;
}

TEST_CASE("gated_product matches the float64 reference") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const uint64_t half_width : {1, 3, 48, 197, 1370, 4099}) {
      for (const uint64_t rows : {2, 5, 50}) {
        const HostTensor x = test::random_tensor({rows, 2 * half_width}, dtype, 1, -4, 4);
        test::check_op(op_gated_product, op_case(Activation::silu, x));
      }
    }
    const HostTensor x = test::random_tensor({2, 17, 96}, dtype, 1, -4, 4);
    for (const Activation activation : {Activation::none, Activation::gelu, Activation::gelu_tanh,
                                        Activation::gelu_quick, Activation::tanh}) {
      test::check_op(op_gated_product, op_case(activation, x));
    }
  }
}

TEST_CASE("gated_product keeps NaN and infinity of either half") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  test::OpCase nonfinite = op_case(
      Activation::silu, {{2, 8}, DType::f32, {nan, 1, inf, -inf, 1, nan, 1, 1, 0, 2, 3, 4, inf, -inf, 1, 2}});
  nonfinite.allow_nonfinite = true;
  test::check_op(op_gated_product, nonfinite);
}

TEST_CASE("gated_product refuses an odd width") {
  Graph graph;
  CHECK_THROWS_AS(gated_product(graph, "y", graph.input("x", {2, 7}), Activation::silu), Error);
}

}  // namespace
}  // namespace vitrine
