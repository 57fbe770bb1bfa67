#include "runtime/ops/tokens/pool.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "runtime/util/error.h"
#include "tests/support/op_test.h"
#include "tests/support/reference.h"

namespace vitrine {
namespace {

using test::HostTensor;

test::OpCase mean_case(HostTensor tokens, uint64_t first, uint64_t count) {
  test::OpCase result;
  result.label = tokens.shape.to_string() + " " + std::string(name_of(tokens.dtype)) + " from " +
                 std::to_string(first) + " on " + std::to_string(count);
  result.expected = {reference::pool(tokens.values, tokens.shape, first, count)};
  result.inputs = {{std::move(tokens)}};
  result.build = [=](Graph& graph, std::span<const ValueId> in) {
    return std::vector{pool_mean(graph, "pooled", in[0], first, count)};
  };
  return result;
}

TEST_CASE("pool_mean matches the float64 reference") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const uint64_t dims : {3, 48, 197, 768}) {
      test::check_op(op_pool, mean_case(test::random_tensor({3, 50, dims}, dtype, 1), 1, 49));
    }
    test::check_op(op_pool, mean_case(test::random_tensor({2, 197, 192}, dtype, 1), 0, 197));
    test::check_op(op_pool, mean_case(test::random_tensor({1, 1370, 67}, dtype, 1), 5, 1365));
    test::check_op(op_pool, mean_case(test::random_tensor({5, 2, 1}, dtype, 1), 0, 2));
    test::check_op(op_pool, mean_case(test::random_tensor({2, 33, 4099}, dtype, 1), 16, 17));
  }
}

TEST_CASE("pool_token copies the token exactly") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const uint64_t index : {0, 1, 49}) {
      const HostTensor tokens = test::random_tensor({3, 50, 77}, dtype, 1);
      test::OpCase token = mean_case(tokens, index, 1);
      token.exact = true;
      token.build = [=](Graph& graph, std::span<const ValueId> in) {
        return std::vector{pool_token(graph, "pooled", in[0], index)};
      };
      test::check_op(op_pool, token);
    }
  }
}

TEST_CASE("pooling hides no NaN or infinity") {
  HostTensor tokens = test::random_tensor({2, 5, 7}, DType::f32, 1);
  tokens.values[8] = std::numeric_limits<double>::quiet_NaN();
  tokens.values[50] = std::numeric_limits<double>::infinity();
  test::OpCase nonfinite = mean_case(std::move(tokens), 1, 4);
  nonfinite.allow_nonfinite = true;
  test::check_op(op_pool, nonfinite);
}

TEST_CASE("pooling refuses tokens that are not there") {
  Graph graph;
  const ValueId tokens = graph.input("tokens", {2, 5, 7});
  CHECK_THROWS_AS(pool_token(graph, "pooled", tokens, 5), Error);
  CHECK_THROWS_AS(pool_mean(graph, "pooled", tokens, 2, 4), Error);
  CHECK_THROWS_AS(pool_mean(graph, "pooled", tokens, 0, 0), Error);
}

}  // namespace
}  // namespace vitrine
