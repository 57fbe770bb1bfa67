#include "runtime/ops/moves/repeat.h"

#include <catch2/catch_test_macros.hpp>

#include "runtime/util/error.h"
#include "tests/support/op_test.h"

namespace vitrine {
namespace {

using test::HostTensor;

void check(HostTensor x, uint64_t count) {
  test::OpCase result;
  result.label =
      x.shape.to_string() + " " + std::string(name_of(x.dtype)) + ", " + std::to_string(count) + " copies";
  std::vector<double> expected;
  for (uint64_t i = 0; i < count; ++i) expected.insert(expected.end(), x.values.begin(), x.values.end());
  result.expected = {std::move(expected)};
  result.inputs = {{std::move(x)}};
  result.build = [count](Graph& graph, std::span<const ValueId> in) {
    return std::vector{repeat(graph, "y", in[0], count)};
  };
  result.exact = true;
  test::check_op(op_repeat, result);
}

TEST_CASE("repeat gives every image of a batch the same tensor") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::u32}) {
    const auto x = [&](Shape shape) { return test::random_tensor(shape, dtype, 1, 0, 1000); };
    check(x({1, 768}), 32);
    check(x({7}), 1);
    check(x({3, 5, 11}), 13);
    check(x({4099}), 3);
  }
}

TEST_CASE("repeat_tokens gives every image the tokens, one or several") {
  Graph graph;
  const ValueId one = graph.input("one", {8}), several = graph.input("several", {4, 8});
  CHECK(graph.value(repeat_tokens(graph, "a", one, 3)).shape == Shape{3, 1, 8});
  CHECK(graph.value(repeat_tokens(graph, "b", several, 3)).shape == Shape{3, 4, 8});

  const HostTensor x = test::random_tensor({13}, DType::f32, 1);
  test::OpCase token;
  token.label = "one token";
  token.expected = {{}};
  for (int i = 0; i < 5; ++i)
    token.expected[0].insert(token.expected[0].end(), x.values.begin(), x.values.end());
  token.inputs = {{x}};
  token.build = [](Graph& g, std::span<const ValueId> in) {
    return std::vector{repeat_tokens(g, "y", in[0], 5)};
  };
  token.exact = true;
  test::check_op(op_repeat, token);
}

TEST_CASE("repeat refuses no copies and too many dimensions") {
  Graph graph;
  CHECK_THROWS_AS(repeat(graph, "y", graph.input("x", {2, 5}), 0), Error);
  CHECK_THROWS_AS(repeat(graph, "z", graph.input("deep", {1, 2, 1, 2, 1}), 2), Error);
}

}  // namespace
}  // namespace vitrine
