#include "runtime/ops/norms/layer_norm.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "tests/support/op_test.h"
#include "tests/support/reference.h"

namespace vitrine {
namespace {

using test::HostTensor;

struct Case {
  Shape shape;
  DType in = DType::f32, out = DType::f32;
  double eps = 1e-6, low = -1, high = 1;
  bool rms = false;
};

test::OpCase op_case(const Case& c, HostTensor x) {
  const Shape width{c.shape[-1]};
  const HostTensor gamma = test::random_tensor(width, DType::f32, 2, 0.5, 1.5);
  const HostTensor beta = test::random_tensor(width, DType::f32, 3);
  test::OpCase result;
  result.label =
      c.shape.to_string() + " " + std::string(name_of(c.in)) + " to " + std::string(name_of(c.out));
  result.expected = {
      reference::layer_norm(x.values, gamma.values, c.rms ? reference::Values{} : beta.values, c.eps)};
  result.inputs = {{std::move(x)}, {gamma, Role::constant}};
  if (!c.rms) result.inputs.push_back({beta, Role::constant});
  result.build = [c](Graph& graph, std::span<const ValueId> in) {
    return std::vector{layer_norm(graph, "norm", in[0], in[1], c.rms ? ValueId{} : in[2],
                                  {.eps = c.eps, .out = c.out, .rms = c.rms})};
  };
  return result;
}

void check(const Case& c) {
  test::check_op(op_layer_norm, op_case(c, test::random_tensor(c.shape, c.in, 1, c.low, c.high)));
}

TEST_CASE("layer_norm matches the float64 reference at every width") {
  for (const uint64_t width : {3, 8, 48, 192, 197, 768, 1370, 3072, 4099}) check({{5, width}});
}

TEST_CASE("layer_norm matches the float64 reference at every number of rows") {
  for (const uint64_t rows : {1, 2, 50, 197}) check({{rows, 192}});
  check({{2, 197, 384}});
  check({{3, 2, 5, 48}});
  check({{768}});
}

TEST_CASE("layer_norm divides by the root mean square alone") {
  for (const uint64_t width : {1, 3, 8, 48, 192, 197, 768, 1370, 3072, 4099})
    check({.shape = {5, width}, .low = 1, .high = 3, .rms = true});
  for (const DType in : {DType::f32, DType::f16}) {
    for (const DType out : {DType::f32, DType::f16}) {
      for (const Shape& shape : {Shape{9, 52}, Shape{11, 72}, Shape{197, 1024}, Shape{2, 17, 1370}})
        check({.shape = shape, .in = in, .out = out, .low = -1, .high = 3, .rms = true});
    }
  }
  check({.shape = {11, 192}, .eps = 1e-5, .low = -3e-3, .high = 3e-3, .rms = true});
}

TEST_CASE("layer_norm of one element is beta") {
  test::OpCase beta = op_case({{7, 1}}, test::random_tensor({7, 1}, DType::f32, 1));
  beta.allow_nonfinite = true;  // says that the reference may be constant, which here is the point
  beta.exact = true;
  test::check_op(op_layer_norm, beta);
}

TEST_CASE("layer_norm takes more rows than a dispatch has workgroups in x") { check({{70001, 3}}); }

TEST_CASE("layer_norm reads and writes f16") {
  for (const DType in : {DType::f32, DType::f16}) {
    for (const DType out : {DType::f32, DType::f16}) {
      for (const Shape& shape :
           {Shape{5, 3}, Shape{9, 52}, Shape{11, 72}, Shape{197, 768}, Shape{2, 17, 1370}, Shape{3, 3080}}) {
        check({shape, in, out});
      }
    }
  }
}

TEST_CASE("layer_norm subtracts the mean before squaring") {
  check({.shape = {11, 768}, .low = 7, .high = 9});
}

TEST_CASE("layer_norm adds eps to the variance") {
  check({.shape = {11, 192}, .eps = 1e-5, .low = -3e-3, .high = 3e-3});
  check({.shape = {11, 192}, .eps = 1e-12, .low = -3e-3, .high = 3e-3});
}

// Widths that the kernels prefer: for any device, for CPUs, and where subgroups share a row.
constexpr uint64_t widths[] = {197, 52, 1032};

TEST_CASE("layer_norm of a row with NaN or infinity is NaN, other rows are untouched") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const uint64_t width : widths) {
      const Case c{{6, width}, dtype, dtype};
      HostTensor x = test::random_tensor(c.shape, dtype, 1);
      x.values[2 * width - 1] = std::numeric_limits<double>::quiet_NaN();
      x.values[3 * width] = std::numeric_limits<double>::infinity();
      x.values[4 * width + 33] = -std::numeric_limits<double>::infinity();
      test::OpCase nonfinite = op_case(c, std::move(x));
      nonfinite.allow_nonfinite = true;
      test::check_op(op_layer_norm, nonfinite);
    }
  }
}

TEST_CASE("layer_norm hands on a NaN of each input, wherever it stands") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const uint64_t width : widths) {
      const Case c{{5, width}, dtype, dtype};
      test::check_nan(op_layer_norm, op_case(c, test::random_tensor(c.shape, dtype, 1)), [=](auto in) {
        return test::Results{reference::layer_norm(in[0], in[1], in[2], c.eps)};
      });
    }
  }
}

TEST_CASE("layer_norm may overwrite its input") {
  for (const uint64_t width : widths) {
    const Case c{{13, width}};
    test::OpCase chain = op_case(c, test::random_tensor(c.shape, DType::f32, 1));
    chain.label = "three in a row";
    for (int i = 0; i < 2; ++i) {
      chain.expected = {reference::layer_norm(chain.expected[0], chain.inputs[1].tensor.values,
                                              chain.inputs[2].tensor.values, c.eps)};
    }
    chain.build = [](Graph& graph, std::span<const ValueId> in) {
      ValueId x = in[0];
      for (const char* name : {"first", "second", "third"}) x = layer_norm(graph, name, x, in[1], in[2]);
      return std::vector{x};
    };
    test::check_op(op_layer_norm, chain);
  }
}

}  // namespace
}  // namespace vitrine
