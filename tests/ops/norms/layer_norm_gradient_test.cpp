#include "runtime/ops/norms/layer_norm_gradient.h"

#include <catch2/catch_test_macros.hpp>

#include "runtime/check/reference_gradients.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/norms/layer_norm.h"
#include "runtime/util/error.h"
#include "tests/support/gradient_test.h"

namespace vitrine {
namespace {

constexpr double eps = 1e-6;

struct Types {
  DType dy, x;
};

test::OpCase op_case(const Shape& shape, Types types, bool parameters, bool residual = false) {
  test::OpCase c;
  c.label = shape.to_string() + ", dy " + std::string(name_of(types.dy)) + ", x " +
            std::string(name_of(types.x)) + (parameters ? ", parameters" : "") +
            (residual ? ", residual" : "");
  c.inputs = {{test::random_tensor(shape, types.dy, 1)},
              {test::random_tensor(shape, types.x, 2, -1, 3)},
              {test::random_tensor({shape[-1]}, DType::f32, 3)}};
  reference::LayerNormGradient expected = reference::layer_norm_gradient(
      c.inputs[0].tensor.values, c.inputs[1].tensor.values, c.inputs[2].tensor.values, eps);
  if (residual) {
    c.inputs.push_back({test::random_tensor(shape, types.x, 4)});
    for (size_t i = 0; i < expected.dx.size(); ++i) expected.dx[i] += c.inputs[3].tensor.values[i];
  }
  c.expected = {std::move(expected.dx)};
  if (parameters) {
    c.expected.push_back(std::move(expected.dgamma));
    c.expected.push_back(std::move(expected.dbeta));
  }
  c.build = [=](Graph& graph, std::span<const ValueId> in) {
    const LayerNormGradients found =
        layer_norm_gradient(graph, "dx", in[0], in[1], in[2], eps, parameters, residual ? in[3] : ValueId{});
    return parameters ? std::vector{found.dx, found.dgamma, found.dbeta} : std::vector{found.dx};
  };
  return c;
}

constexpr Types f32{DType::f32, DType::f32};

TEST_CASE("the gradient of LayerNorm matches the float64 reference") {
  for (const bool parameters : {false, true}) {
    for (const uint64_t width : {3, 8, 48, 52, 197, 768, 1031})
      test::check_op(op_layer_norm_gradient, op_case({5, width}, f32, parameters));
    // Widths of fewer and of more groups of four than a subgroup has lanes.
    for (const uint64_t rows : {1, 50, 64, 65, 197}) {
      for (const uint64_t width : {4, 12, 36})
        test::check_op(op_layer_norm_gradient, op_case({rows, width}, f32, parameters));
    }
    test::check_op(op_layer_norm_gradient, op_case({2, 3, 50, 24}, f32, parameters));
    for (const Types types :
         {Types{DType::f16, DType::f16}, {DType::f16, DType::f32}, {DType::f32, DType::f16}}) {
      test::check_op(op_layer_norm_gradient, op_case({70, 36}, types, parameters));
      test::check_op(op_layer_norm_gradient, op_case({7, 67}, types, parameters));
      test::check_op(op_layer_norm_gradient, op_case({5, 72}, types, parameters));
      test::check_op(op_layer_norm_gradient, op_case({3, 1032}, types, parameters));
    }
  }
}

TEST_CASE("the gradient of LayerNorm hands on a NaN of each input, wherever it stands") {
  for (const uint64_t width : {67, 36, 1032}) {
    test::check_nan(op_layer_norm_gradient, op_case({70, width}, f32, true), [](auto in) {
      reference::LayerNormGradient expected = reference::layer_norm_gradient(in[0], in[1], in[2], eps);
      return std::vector{std::move(expected.dx), std::move(expected.dgamma), std::move(expected.dbeta)};
    });
  }
}

TEST_CASE("the gradient of RMSNorm matches the float64 reference") {
  for (const uint64_t width : {3, 8, 52, 197, 768, 1032}) {
    test::GradientCase c;
    c.label = "RMSNorm of " + std::to_string(width);
    c.inputs = {{test::random_tensor({5, width}, DType::f32, 1, -1, 3)},
                {test::random_tensor({width}, DType::f32, 2)}};
    c.build = [](Graph& graph, std::span<const ValueId> in) {
      return std::vector{layer_norm(graph, "norm", in[0], in[1], {}, {.eps = 1e-3, .rms = true})};
    };
    c.forward = [](std::span<const test::Values> in) {
      return test::Results{reference::layer_norm(in[0], in[1], {}, 1e-3)};
    };
    c.backward = [](std::span<const test::Values> in, std::span<const test::Values> dy) {
      reference::LayerNormGradient found = reference::layer_norm_gradient(dy[0], in[0], in[1], 1e-3, true);
      return test::Results{std::move(found.dx), std::move(found.dgamma)};
    };
    test::check_gradients(c);
  }
}

TEST_CASE("the gradient of LayerNorm is added to what there is") {
  for (const bool parameters : {false, true}) {
    for (const Shape& shape : {Shape{5, 67}, Shape{70, 36}, Shape{3, 50, 8}, Shape{2, 1032}}) {
      for (const Types types : {f32, Types{DType::f16, DType::f32}, Types{DType::f32, DType::f16}})
        test::check_op(op_layer_norm_gradient, op_case(shape, types, parameters, true));
    }
  }
}

TEST_CASE("the gradients of LayerNorm's parameters keep their precision over many rows") {
  test::check_op(op_layer_norm_gradient, op_case({6400, 8}, f32, true));
  test::check_op(op_layer_norm_gradient, op_case({6397, 8}, f32, true));
  test::check_op(op_layer_norm_gradient, op_case({30011, 16}, f32, true));
}

TEST_CASE("layer_norm has a derivative") {
  for (const bool parameters : {false, true}) {
    for (const Shape& shape : {Shape{5, 7}, Shape{3, 31, 12}}) {
      test::GradientCase c;
      c.label = shape.to_string() + (parameters ? ", parameters" : "");
      const Role role = parameters ? Role::input : Role::constant;
      c.inputs = {{test::random_tensor(shape, DType::f32, 1, -1, 3)},
                  {test::random_tensor({shape[-1]}, DType::f32, 2), role},
                  {test::random_tensor({shape[-1]}, DType::f32, 3), role}};
      c.build = [](Graph& graph, std::span<const ValueId> in) {
        return std::vector{layer_norm(graph, "y", in[0], in[1], in[2], {.eps = 1e-5})};
      };
      c.forward = [](std::span<const test::Values> in) {
        return test::Results{reference::layer_norm(in[0], in[1], in[2], 1e-5)};
      };
      c.backward = [=](std::span<const test::Values> in, std::span<const test::Values> dy) {
        reference::LayerNormGradient found = reference::layer_norm_gradient(dy[0], in[0], in[1], 1e-5);
        if (!parameters) return test::Results{found.dx, {}, {}};
        return test::Results{found.dx, found.dgamma, found.dbeta};
      };
      test::check_gradients(c);
    }
  }
}

TEST_CASE("layer_norm adds its derivative to that of what goes around it") {
  test::GradientCase c;
  c.label = "x + layer_norm(x)";
  c.inputs = {{test::random_tensor({6, 8}, DType::f32, 1, -1, 3)},
              {test::random_tensor({8}, DType::f32, 2)},
              {test::random_tensor({8}, DType::f32, 3)}};
  c.build = [](Graph& graph, std::span<const ValueId> in) {
    return std::vector{add(graph, "sum", in[0], layer_norm(graph, "y", in[0], in[1], in[2], {.eps = 1e-5}))};
  };
  c.forward = [](std::span<const test::Values> in) {
    test::Values sum = reference::layer_norm(in[0], in[1], in[2], 1e-5);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += in[0][i];
    return test::Results{sum};
  };
  c.backward = [](std::span<const test::Values> in, std::span<const test::Values> dy) {
    reference::LayerNormGradient found = reference::layer_norm_gradient(dy[0], in[0], in[1], 1e-5);
    for (size_t i = 0; i < found.dx.size(); ++i) found.dx[i] += dy[0][i];
    return test::Results{found.dx, found.dgamma, found.dbeta};
  };
  test::check_gradients(c);
}

TEST_CASE("the gradient of LayerNorm refuses shapes that don't fit") {
  Graph graph;
  const ValueId dy = graph.input("dy", {2, 3}), x = graph.input("x", {2, 3}), gamma = graph.input("g", {2});
  CHECK_THROWS_AS(layer_norm_gradient(graph, "dx", dy, x, gamma, 1e-6, true), Error);
  const ValueId fits = graph.input("fits", {3}), residual = graph.input("residual", {3, 2});
  CHECK_THROWS_AS(layer_norm_gradient(graph, "dx", dy, x, fits, 1e-6, true, residual), Error);
}

}  // namespace
}  // namespace vitrine
