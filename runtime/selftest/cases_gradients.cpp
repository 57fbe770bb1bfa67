// The cases of the operators that only training needs.
#include "runtime/ops/elementwise/activation_gradient.h"
#include "runtime/ops/elementwise/gated_product_gradient.h"
#include "runtime/ops/moves/sum_rows.h"
#include "runtime/ops/moves/transpose.h"
#include "runtime/ops/norms/layer_norm_gradient.h"
#include "runtime/ops/norms/softmax_gradient.h"
#include "runtime/selftest/cases.h"
#include "runtime/selftest/reference_gradients.h"

namespace vitrine::selftest {
namespace {

constexpr DType dtypes[] = {DType::f32, DType::f16};

}  // namespace

std::vector<OpCase> activation_gradient_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor dy = random_tensor({5, 67}, dtype, 1), x = random_tensor({5, 67}, dtype, 2, -4, 4);
    for (const Activation activation : {Activation::gelu, Activation::gelu_tanh, Activation::gelu_quick,
                                        Activation::silu, Activation::tanh}) {
      OpCase& c = cases.emplace_back();
      c.label = name_of(activation);
      c.inputs = {{dy}, {x}};
      c.expected = {reference::activation_gradient(activation, dy.values, x.values)};
      c.build = [activation](Graph& graph, std::span<const ValueId> ids) {
        return std::vector{activation_gradient(graph, "dx", ids[0], ids[1], activation)};
      };
    }
  }
  return cases;
}

std::vector<OpCase> sum_rows_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor a = random_tensor({133, 7}, dtype, 1), b = random_tensor({133, 7}, dtype, 2);
    OpCase& sums = cases.emplace_back();
    sums.label = "133 rows";
    sums.inputs = {{a}};
    sums.expected = {reference::sum_rows(a.values, 7)};
    sums.build = [](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{sum_rows(graph, "y", ids[0])};
    };
    OpCase& products = cases.emplace_back();
    products.label = "133 rows of products";
    products.inputs = {{a}, {b}};
    products.expected = {reference::sum_rows(reference::multiply(a.values, b.values), 7)};
    products.build = [](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{sum_products(graph, "y", ids[0], ids[1])};
    };
  }
  return cases;
}

std::vector<OpCase> transpose_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor x = random_tensor({3, 35, 37}, dtype, 1);
    OpCase& c = cases.emplace_back();
    c.label = "three matrices";
    c.inputs = {{x}};
    c.expected = {reference::transpose(x.values, 35, 37)};
    c.exact = true;
    c.build = [](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{transpose(graph, "y", ids[0])};
    };
  }
  return cases;
}

std::vector<OpCase> softmax_gradient_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t width : {uint64_t{7}, uint64_t{132}}) {
      const HostTensor dy = random_tensor({37, width}, dtype, 1), y = random_tensor({37, width}, dtype, 2, 0);
      OpCase& c = cases.emplace_back();
      c.label = "rows of " + std::to_string(width);
      c.inputs = {{dy}, {y}};
      c.expected = {reference::softmax_gradient(dy.values, y.values, width)};
      c.build = [](Graph& graph, std::span<const ValueId> ids) {
        return std::vector{softmax_gradient(graph, "dx", ids[0], ids[1])};
      };
    }
  }
  return cases;
}

std::vector<OpCase> layer_norm_gradient_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t width : {uint64_t{7}, uint64_t{132}}) {
      const HostTensor dy = random_tensor({75, width}, dtype, 1),
                       x = random_tensor({75, width}, dtype, 2, -1, 3),
                       gamma = random_tensor({width}, DType::f32, 3);
      reference::LayerNormGradient expected =
          reference::layer_norm_gradient(dy.values, x.values, gamma.values, 1e-5);
      OpCase& c = cases.emplace_back();
      c.label = "rows of " + std::to_string(width);
      c.inputs = {{dy}, {x}, {gamma}};
      c.expected = {std::move(expected.dx), std::move(expected.dgamma), std::move(expected.dbeta)};
      c.build = [](Graph& graph, std::span<const ValueId> ids) {
        const auto [dx, dgamma, dbeta] = layer_norm_gradient(graph, "dx", ids[0], ids[1], ids[2], 1e-5, true);
        return std::vector{dx, dgamma, dbeta};
      };
    }
  }
  return cases;
}

std::vector<OpCase> gated_product_gradient_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    const HostTensor dy = random_tensor({5, 67}, dtype, 1), x = random_tensor({5, 134}, dtype, 2, -3, 3);
    OpCase& c = cases.emplace_back();
    c.label = "SwiGLU";
    c.inputs = {{dy}, {x}};
    c.expected = {reference::gated_product_gradient(dy.values, x.values, 67, Activation::silu)};
    c.build = [](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{gated_product_gradient(graph, "dx", ids[0], ids[1], Activation::silu)};
    };
  }
  return cases;
}

}  // namespace vitrine::selftest
