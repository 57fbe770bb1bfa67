#include "runtime/ops/moves/gather.h"

#include <catch2/catch_test_macros.hpp>

#include "runtime/util/error.h"
#include "tests/support/op_test.h"
#include "tests/support/reference.h"

namespace vitrine {
namespace {

using test::HostTensor;

void check(HostTensor x, std::vector<double> numbers) {
  test::OpCase result;
  result.label = x.shape.to_string() + " " + std::string(name_of(x.dtype)) + ", " +
                 std::to_string(numbers.size()) + " rows";
  result.expected = {reference::gather(x.values, x.shape, numbers)};
  const Shape rows{numbers.size()};
  result.inputs = {{std::move(x)}, {{rows, DType::u32, std::move(numbers)}}};
  result.build = [](Graph& graph, std::span<const ValueId> in) {
    return std::vector{gather(graph, "y", in[0], in[1])};
  };
  result.exact = true;
  result.allow_nonfinite = true;
  test::check_op(op_gather, result);
}

TEST_CASE("gather picks rows in any order, twice or not at all") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::u32}) {
    const auto x = [&](Shape shape) { return test::random_tensor(shape, dtype, 1, 0, 1000); };
    check(x({5, 7}), {4, 0, 0, 3});
    check(x({3, 50, 197}), {49, 1});
    check(x({2, 3, 5, 1}), {2, 1, 0, 2, 1});
    check(x({197, 768}), {196});
    check(x({2, 4099}), {1, 0, 1});
  }
}

TEST_CASE("gather gives NaN for a row that is not there") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    check(test::random_tensor({2, 5, 7}, dtype, 1), {4, 5, 0, 4294967295.0});
  }
}

TEST_CASE("gather refuses row numbers that are not u32") {
  Graph graph;
  const ValueId x = graph.input("x", {2, 5});
  CHECK_THROWS_AS(gather(graph, "y", x, graph.input("rows", {2})), Error);
  CHECK_THROWS_AS(gather(graph, "y", graph.input("flat", {5}), graph.input("numbers", {2}, DType::u32)),
                  Error);
}

}  // namespace
}  // namespace vitrine
