// The derivative of matmul, whose kernels matmul_test.cpp looks at.
#include <catch2/catch_test_macros.hpp>

#include "runtime/check/reference_gradients.h"
#include "runtime/ops/products/matmul.h"
#include "tests/support/gradient_test.h"
#include "tests/support/reference_matmul.h"

namespace vitrine {
namespace {

struct Parts {
  bool bias = false, scale = false, residual = false;
  Activation activation = Activation::none;
  bool rounded = false;
};

constexpr size_t x_at = 0, weight_at = 1, bias_at = 2, scale_at = 3, residual_at = 4;

// All five inputs are there, those left out unused.
test::GradientCase gradient_case(const Shape& rows, uint64_t n, uint64_t k, Parts parts, DType dtype,
                                 DType out) {
  const auto with = [&](uint64_t last) {
    std::vector<uint64_t> dims(rows.dims().begin(), rows.dims().end());
    dims.push_back(last);
    return Shape(dims);
  };
  test::GradientCase c;
  c.label = with(k).to_string() + " to " + std::to_string(n) + " " + std::string(name_of(dtype)) + " to " +
            std::string(name_of(out)) + ", activation " + std::string(name_of(parts.activation)) +
            (parts.bias ? ", bias" : "") + (parts.scale ? ", scale" : "") +
            (parts.residual ? ", residual" : "") + (parts.rounded ? ", rounded" : "");
  c.inputs = {{test::random_tensor(with(k), dtype, 1)},
              {test::random_tensor({n, k}, dtype, 2)},
              {test::random_tensor({n}, DType::f32, 3)},
              {test::random_tensor({n}, DType::f32, 4)},
              {test::random_tensor(with(n), DType::f32, 5)}};
  const uint64_t m = rows.elements();
  const auto epilogue = [parts](std::span<const test::Values> in) {
    reference::Epilogue e{.activation = parts.activation};
    if (parts.bias) e.bias = in[bias_at];
    if (parts.scale) e.scale = in[scale_at];
    if (parts.residual) e.residual = in[residual_at];
    return e;
  };
  c.build = [=](Graph& graph, std::span<const ValueId> in) {
    return std::vector{matmul(graph, "y", in[x_at], in[weight_at],
                              {.bias = parts.bias ? in[bias_at] : ValueId{},
                               .activation = parts.activation,
                               .scale = parts.scale ? in[scale_at] : ValueId{},
                               .residual = parts.residual ? in[residual_at] : ValueId{},
                               .out = out,
                               .rounded = parts.rounded})};
  };
  c.forward = [=](std::span<const test::Values> in) {
    return test::Results{reference::matmul(in[x_at], in[weight_at], m, n, k, epilogue(in))};
  };
  c.backward = [=](std::span<const test::Values> in, std::span<const test::Values> dy) {
    const reference::Epilogue e = epilogue(in);
    const test::Values z = reference::matmul(in[x_at], in[weight_at], m, n, k, {.bias = e.bias});
    test::Results d(5);
    if (parts.residual) d[residual_at] = dy[0];
    test::Values dz = dy[0];
    if (parts.scale) {
      d[scale_at] = reference::sum_rows(reference::multiply(dz, reference::activate(e.activation, z)), n);
      for (size_t i = 0; i < dz.size(); ++i) dz[i] *= e.scale[i % n];
    }
    dz = reference::activation_gradient(e.activation, dz, z);
    if (parts.bias) d[bias_at] = reference::sum_rows(dz, n);
    d[x_at].resize(m * k);
    d[weight_at].resize(n * k);
    for (uint64_t row = 0; row < m; ++row) {
      for (uint64_t column = 0; column < n; ++column) {
        for (uint64_t i = 0; i < k; ++i) {
          d[x_at][row * k + i] += dz[row * n + column] * in[weight_at][column * k + i];
          d[weight_at][column * k + i] += dz[row * n + column] * in[x_at][row * k + i];
        }
      }
    }
    return d;
  };
  if (parts.rounded) c.tolerance = 1e-3;  // as of what f16 holds, where nothing else is rounded
  return c;
}

void check(const Shape& rows, uint64_t n, uint64_t k, Parts parts = {}, DType dtype = DType::f32,
           DType out = DType::f32) {
  test::check_gradients(gradient_case(rows, n, k, parts, dtype, out));
}

TEST_CASE("matmul has a derivative") {
  check({1}, 3, 7);
  check({7}, 31, 3);
  check({2, 37}, 17, 48);
  check({3, 5, 7}, 24, 8);
  check({50}, 64, 65);
}

TEST_CASE("matmul's epilogue has a derivative") {
  check({41}, 17, 12, {.bias = true});
  check({41}, 17, 12, {.scale = true});
  check({41}, 17, 12, {.residual = true});
  check({41}, 17, 12, {.activation = Activation::gelu});
  check({2, 20}, 17, 12, {.bias = true, .activation = Activation::silu});
  check({2, 20}, 17, 12, {true, true, true, Activation::gelu_tanh});
}

TEST_CASE("matmul of f16 has a derivative") {
  check({41}, 17, 12, {}, DType::f16, DType::f16);
  check({41}, 17, 12, {true, true, true, Activation::gelu}, DType::f16, DType::f32);
}

TEST_CASE("matmul that may be rounded has a derivative") {
  check({41}, 36, 44, {.rounded = true});
  check({2, 37}, 52, 41, {.bias = true, .activation = Activation::gelu, .rounded = true});
}

}  // namespace
}  // namespace vitrine
