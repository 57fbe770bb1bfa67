#include "runtime/ops/moves/slice.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "runtime/util/error.h"
#include "tests/support/op_test.h"
#include "tests/support/reference.h"

namespace vitrine {
namespace {

using test::HostTensor;

void check(HostTensor x, int axis, uint64_t begin, uint64_t end) {
  test::OpCase result;
  result.label = x.shape.to_string() + " " + std::string(name_of(x.dtype)) + " axis " + std::to_string(axis) +
                 " from " + std::to_string(begin) + " to " + std::to_string(end);
  result.expected = {reference::slice(x.values, x.shape, axis, begin, end)};
  result.inputs = {{std::move(x)}};
  result.build = [=](Graph& graph, std::span<const ValueId> in) {
    return std::vector{slice(graph, "y", in[0], axis, begin, end)};
  };
  result.exact = true;
  result.allow_nonfinite = true;  // they are moved like any other value
  test::check_op(op_slice, result);
}

TEST_CASE("slice takes a range of any axis of any dtype") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::u32}) {
    const HostTensor x = test::random_tensor({3, 5, 7, 11}, dtype, 1, 0, 1000);
    check(x, 0, 1, 3);
    check(x, 1, 0, 4);
    check(x, 2, 6, 7);
    check(x, 3, 2, 9);
    check(x, -1, 10, 11);
    check(x, -4, 0, 3);
    check(test::random_tensor({4099}, dtype, 2, 0, 1000), 0, 1, 4098);
    check(test::random_tensor({2, 197, 192}, dtype, 3, 0, 1000), 1, 1, 197);
  }
}

TEST_CASE("slice moves NaN and infinity unchanged") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  check({{2, 4}, DType::f32, {1, inf, std::numeric_limits<double>::quiet_NaN(), 4, 5, -inf, 7, 8}}, 1, 1, 3);
}

TEST_CASE("slice refuses ranges and axes that are not there") {
  Graph graph;
  const ValueId x = graph.input("x", {2, 5});
  CHECK_THROWS_AS(slice(graph, "y", x, 2, 0, 1), Error);
  CHECK_THROWS_AS(slice(graph, "y", x, -3, 0, 1), Error);
  CHECK_THROWS_AS(slice(graph, "y", x, 1, 3, 3), Error);
  CHECK_THROWS_AS(slice(graph, "y", x, 1, 3, 6), Error);
}

}  // namespace
}  // namespace vitrine
