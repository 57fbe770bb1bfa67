#include "runtime/ops/norms/softmax.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "tests/support/op_test.h"
#include "tests/support/reference.h"

namespace vitrine {
namespace {

using test::HostTensor;

test::OpCase op_case(HostTensor x) {
  test::OpCase result;
  result.label = x.shape.to_string() + " " + std::string(name_of(x.dtype));
  result.expected = {reference::softmax(x.values, x.shape[-1])};
  result.inputs = {{std::move(x)}};
  result.build = [](Graph& graph, std::span<const ValueId> in) {
    return std::vector{softmax(graph, "y", in[0])};
  };
  return result;
}

void check(const Shape& shape, DType dtype, double low = -4, double high = 4) {
  test::check_op(op_softmax, op_case(test::random_tensor(shape, dtype, 1, low, high)));
}

TEST_CASE("softmax matches the float64 reference at every width") {
  for (const uint64_t width : {3, 8, 48, 192, 197, 768, 1000, 1370, 3072, 4099})
    check({5, width}, DType::f32);
}

TEST_CASE("softmax matches the float64 reference at every number of rows") {
  for (const uint64_t rows : {1, 2, 50, 197}) check({rows, 197}, DType::f32);
  check({2, 3, 17, 17}, DType::f32);
  check({10}, DType::f32);
  check({70001, 3}, DType::f32);
}

TEST_CASE("softmax reads and writes f16") {
  for (const Shape& shape : {Shape{5, 3}, Shape{9, 52}, Shape{11, 72}, Shape{3, 1000}, Shape{197, 197},
                             Shape{2, 7, 1370}, Shape{3, 3080}})
    check(shape, DType::f16);
}

// Widths that the kernels prefer: for any device, for CPUs, and where subgroups share a row.
constexpr uint64_t widths[] = {197, 52, 1032};

TEST_CASE("softmax keeps its precision for large scores") {
  for (const uint64_t width : widths) {
    check({5, width}, DType::f32, 1000, 1004);
    check({5, width}, DType::f32, -3e4, -2.9990e4);
  }
}

TEST_CASE("softmax gives masked scores no weight and hides no NaN") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const uint64_t width : widths) {
      HostTensor x = test::random_tensor({6, width}, dtype, 1);
      x.values[2 * width - 1] = nan;
      x.values[2 * width + 7] = inf;
      x.values[3 * width + 7] = -inf;
      for (size_t i = 0; i < width; ++i) x.values[4 * width + i] = -inf;
      test::OpCase nonfinite = op_case(std::move(x));
      nonfinite.allow_nonfinite = true;
      test::check_op(op_softmax, nonfinite);
    }
  }
}

TEST_CASE("softmax makes NaN of a row with a NaN, wherever it stands") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const uint64_t width : widths) {
      test::check_nan(op_softmax, op_case(test::random_tensor({5, width}, dtype, 1)),
                      [=](auto in) { return test::Results{reference::softmax(in[0], width)}; });
    }
  }
}

TEST_CASE("softmax may overwrite its input") {
  for (const uint64_t width : widths) {
    test::OpCase chain = op_case(test::random_tensor({13, width}, DType::f32, 1, -9, 9));
    chain.expected = {reference::softmax(reference::softmax(chain.expected[0], width), width)};
    chain.build = [](Graph& graph, std::span<const ValueId> in) {
      ValueId x = in[0];
      for (const char* name : {"first", "second", "third"}) x = softmax(graph, name, x);
      return std::vector{x};
    };
    test::check_op(op_softmax, chain);
  }
}

}  // namespace
}  // namespace vitrine
