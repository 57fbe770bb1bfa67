#include "runtime/ops/training/argmax.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "runtime/check/reference_recipes.h"
#include "runtime/util/error.h"
#include "tests/support/op_test.h"

namespace vitrine {
namespace {

using test::HostTensor;

// The last of the first row and the first of the others' last one are largest, so that no reference is
// constant.
HostTensor random_rows(uint64_t rows, uint64_t width) {
  HostTensor x = test::random_tensor({rows, width}, DType::f32, rows + width, -5, 5);
  x.values[(rows - 1) * width] = 6;
  x.values[width - 1] = 7;
  return x;
}

test::OpCase case_of(HostTensor x) {
  test::OpCase c{.label = x.shape.to_string()};
  c.expected = {reference::argmax(x.values, x.shape[1])};
  c.inputs = {{std::move(x)}};
  c.exact = true;
  c.build = [](Graph& graph, std::span<const ValueId> in) { return std::vector{argmax(graph, "y", in[0])}; };
  return c;
}

TEST_CASE("argmax finds the largest of every row") {
  for (const uint64_t width : {2, 3, 10, 17, 100, 1000, 4099})
    test::check_op(op_argmax, case_of(random_rows(13, width)));
  for (const uint64_t rows : {1, 2, 7, 251, 70001}) test::check_op(op_argmax, case_of(random_rows(rows, 3)));
  test::check_op(op_argmax, case_of(random_rows(3, 21843)));
}

TEST_CASE("argmax takes the first of equals, and NaN above all") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  HostTensor x = test::random_tensor({9, 300}, DType::f32, 1);
  const auto set = [&](size_t row, size_t column, double value) { x.values[row * 300 + column] = value; };
  set(0, 7, 3), set(0, 299, 3);
  for (size_t c = 0; c < 300; ++c) set(1, c, c % 2 == 0 ? -2 : -3);
  for (size_t c = 0; c < 300; ++c) set(2, c, -infinity);
  set(3, 250, infinity);
  set(4, 9, infinity), set(4, 200, nan), set(4, 201, nan);
  for (size_t c = 0; c < 300; ++c) set(5, c, -1);
  set(5, 3, -0.0), set(5, 4, 0.0);
  for (size_t c = 0; c < 300; ++c) set(6, c, 1e-42);  // subnormal, and equal
  set(7, 0, -nan), set(7, 1, infinity);
  test::OpCase c = case_of(x);
  CHECK(c.expected[0] == std::vector<double>{7, 0, 0, 250, 200, 3, 0, 0, c.expected[0][8]});
  test::check_op(op_argmax, c);
}

TEST_CASE("argmax refuses what does not fit") {
  Graph graph;
  CHECK_THROWS_AS(argmax(graph, "y", graph.input("row", {4})), Error);
  CHECK_THROWS_AS(argmax(graph, "y", graph.input("labels", {4, 4}, DType::u32)), Error);
}

}  // namespace
}  // namespace vitrine
