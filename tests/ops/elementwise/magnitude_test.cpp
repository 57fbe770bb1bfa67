#include "runtime/ops/elementwise/magnitude.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "runtime/util/error.h"
#include "tests/support/op_test.h"

namespace vitrine {
namespace {

using test::HostTensor;
constexpr double infinity = std::numeric_limits<double>::infinity();
const double not_a_number = std::numeric_limits<double>::quiet_NaN();

// The largest of several tensors at once, so that the reference is not one number alone.
void check(const std::vector<HostTensor>& tensors, bool nonfinite = false) {
  test::OpCase op_case;
  op_case.exact = !nonfinite;
  op_case.allow_nonfinite = nonfinite;
  for (const HostTensor& tensor : tensors) {
    op_case.label += tensor.shape.to_string() + " " + std::string(name_of(tensor.dtype)) + " ";
    double largest = 0;
    for (const double value : tensor.values)
      largest = std::isnan(value) || std::isnan(largest) ? not_a_number : std::max(largest, std::abs(value));
    op_case.expected.push_back({largest});
    op_case.inputs.push_back({tensor});
  }
  op_case.build = [](Graph& graph, std::span<const ValueId> in) {
    std::vector<ValueId> out;
    for (size_t i = 0; i < in.size(); ++i)
      out.push_back(magnitude(graph, "largest" + std::to_string(i), in[i]));
    return out;
  };
  test::check_op(op_magnitude, op_case);
}

HostTensor with(HostTensor tensor, size_t at, double value) {
  tensor.values[at] = value;
  return tensor;
}

TEST_CASE("magnitude finds the largest value wherever it is") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Shape& shape :
         {Shape{1}, Shape{2}, Shape{3, 7}, Shape{127}, Shape{129}, Shape{2, 197, 192}, Shape{4, 257, 1031}}) {
      const HostTensor tensor = test::random_tensor(shape, dtype, 3);
      const size_t count = tensor.values.size();
      check({tensor, with(tensor, 0, -1.5), with(tensor, count - 1, 1.75), with(tensor, count / 2, -2.5)});
    }
  }
  // Past the first pass's most workgroups.
  const HostTensor large = test::random_tensor({1025, 2053}, DType::f32, 4);
  check({with(large, large.values.size() - 1, -3), with(large, 1, 65504)});
}

TEST_CASE("magnitude tells NaN from infinity from numbers") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const HostTensor tensor = test::random_tensor({3, 1031}, dtype, 5);
    const HostTensor high = with(with(tensor, 5, -infinity), 17, 3);
    check({tensor, high}, true);
    check({tensor, with(high, 3092, not_a_number), with(tensor, 0, -not_a_number)}, true);
  }
}

TEST_CASE("magnitude is of numbers, and of at least one") {
  Graph graph;
  CHECK_THROWS_AS(magnitude(graph, "m", graph.input("u", {4}, DType::u32)), Error);
}

}  // namespace
}  // namespace vitrine
