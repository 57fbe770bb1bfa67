#include "runtime/ops/moves/concat.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "runtime/util/error.h"
#include "tests/support/op_test.h"
#include "tests/support/reference.h"

namespace vitrine {
namespace {

using test::HostTensor;

void check(const std::vector<HostTensor>& parts, int axis) {
  test::OpCase result;
  std::vector<reference::Values> values;
  std::vector<Shape> shapes;
  for (const HostTensor& part : parts) {
    result.label += part.shape.to_string() + " ";
    result.inputs.push_back({part});
    values.push_back(part.values);
    shapes.push_back(part.shape);
  }
  result.label += std::string(name_of(parts[0].dtype)) + " axis " + std::to_string(axis);
  result.expected = {reference::concat(values, shapes, axis)};
  result.build = [=](Graph& graph, std::span<const ValueId> in) {
    return std::vector{concat(graph, "y", std::vector(in.begin(), in.end()), axis)};
  };
  result.exact = true;
  result.allow_nonfinite = true;  // they are moved like any other value
  test::check_op(op_concat, result);
}

TEST_CASE("concat joins parts along any axis of any dtype") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::u32}) {
    const auto part = [&](Shape shape, uint64_t seed) {
      return test::random_tensor(shape, dtype, seed, 0, 1000);
    };
    check({part({1, 5, 7}, 1), part({3, 5, 7}, 2)}, 0);
    check({part({2, 1, 7}, 1), part({2, 5, 7}, 2), part({2, 3, 7}, 3)}, 1);
    check({part({2, 5, 1}, 1), part({2, 5, 3}, 2)}, 2);
    check({part({2, 5, 4}, 1), part({2, 5, 4}, 2)}, -1);
    check({part({2, 1, 48}, 1), part({2, 50, 48}, 2)}, -2);
    check({part({3, 11}, 1)}, 1);
  }
}

TEST_CASE("concat moves NaN and infinity unchanged") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  check({{{2, 1}, DType::f32, {inf, 1}},
         {{2, 2}, DType::f32, {std::numeric_limits<double>::quiet_NaN(), 2, 3, -inf}}},
        1);
}

TEST_CASE("concat refuses parts that do not fit") {
  Graph graph;
  const ValueId x = graph.input("x", {2, 5}), y = graph.input("y", {3, 5}),
                h = graph.input("h", {2, 5}, DType::f16);
  CHECK_THROWS_AS(concat(graph, "z", {}, 0), Error);
  CHECK_THROWS_AS(concat(graph, "z", {x, y}, 1), Error);
  CHECK_THROWS_AS(concat(graph, "z", {x, h}, 0), Error);
  CHECK_THROWS_AS(concat(graph, "z", {x, x}, 2), Error);
}

}  // namespace
}  // namespace vitrine
