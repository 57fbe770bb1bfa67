// Attention of which a query sees the keys up to its own number alone.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/attention/attention_kernels.h"
#include "runtime/ops/attention/attention_rows.h"
#include "runtime/ops/attention/plain_attention.h"
#include "runtime/util/error.h"
#include "tests/support/op_test.h"
#include "tests/support/reference_matmul.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

using Catch::Matchers::ContainsSubstring;

struct Case {
  uint64_t batch, heads, tokens, key_width, value_width;
};

// `behind`: what stands in the last token's key, which only the last query may see.
OpCase op_case(const Case& c, DType dtype, double behind = 0) {
  OpCase result;
  result.label = std::to_string(c.tokens) + " tokens, " + std::to_string(c.heads) + " heads of " +
                 std::to_string(c.key_width) + " " + std::string(name_of(dtype));
  result.inputs = {{random_tensor({c.batch, c.tokens, c.heads * c.key_width}, dtype, 1, -2, 2)},
                   {random_tensor({c.batch, c.tokens, c.heads * c.key_width}, dtype, 2, -2, 2)},
                   {random_tensor({c.batch, c.tokens, c.heads * c.value_width}, dtype, 3)}};
  auto& keys = result.inputs[1].tensor.values;
  if (behind != 0) {
    keys.back() = behind;
    result.allow_nonfinite = true;
  }
  const auto heads = [&](size_t i, uint64_t width) {
    return reference::Heads{result.inputs[i].tensor.values, c.tokens, c.heads * width, 0, width};
  };
  reference::Attention expected =
      reference::attention(heads(0, c.key_width), heads(1, c.key_width), heads(2, c.value_width), c.batch,
                           c.heads, 1 / std::sqrt(static_cast<double>(c.key_width)), {},
                           [](uint64_t query, uint64_t key) { return key <= query; });
  result.expected = {std::move(expected.out), std::move(expected.lse)};
  result.build = [c](Graph& graph, std::span<const ValueId> ids) {
    const AttentionResult y = attention(graph, "y", ids[0], ids[1], ids[2],
                                        {.heads = c.heads,
                                         .key_width = c.key_width,
                                         .value_width = c.value_width,
                                         .store_lse = true,
                                         .causal = true});
    return std::vector{y.out, y.lse};
  };
  return result;
}

}  // namespace

TEST_CASE("causal attention matches the float64 reference") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    check_op(op_attention, op_case({2, 3, 17, 8, 5}, dtype));
    check_op(op_attention, op_case({1, 2, 77, 64, 64}, dtype));
    check_op(op_attention, op_case({1, 1, 1, 4, 4}, dtype));
  }
  check_op(op_attention, op_case({1, 2, 197, 32, 48}, DType::f32));
  check_op(op_attention, op_case({1, 1, 19, 256, 256}, DType::f32));
}

TEST_CASE("every configuration of causal attention gives the same") {
  check_configurations(op_attention, op_case({1, 2, 67, 20, 20}, DType::f32));
  check_configurations(op_attention, op_case({1, 1, 131, 64, 64}, DType::f16));
}

TEST_CASE("a key that isn't seen may be anything") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  check_op(op_attention, op_case({1, 1, 23, 8, 8}, DType::f32, nan));
  check_op(op_attention, op_case({1, 1, 23, 8, 8}, DType::f32, std::numeric_limits<double>::infinity()));
}

TEST_CASE("what can't be causal says so") {
  Graph graph;
  const ValueId x = graph.input("x", {1, 16, 64}, DType::f16),
                longer = graph.input("k", {1, 17, 64}, DType::f16);
  const AttentionOptions options{.heads = 2, .key_width = 32, .store_lse = true, .causal = true};
  const AttentionResult y = attention(graph, "y", x, x, x, options);
  CHECK_THROWS_WITH(attention(graph, "z", x, longer, longer, options), ContainsSubstring("17 keys for 16"));
  CHECK_THROWS_WITH(plain_attention(graph, "p", x, x, x, options), ContainsSubstring("causal"));
  CHECK_THROWS_WITH(attention_rows(graph, "r", x, x, y.lse, options), ContainsSubstring("causal"));
  Graph learned;
  const ValueId qkv = learned.input("x", {1, 16, 64});
  const ValueId out = attention(learned, "y", qkv, qkv, qkv, options).out;
  const GradientSeed seed{out, learned.input("dy", {1, 16, 64})};
  CHECK_THROWS_WITH(add_gradients(learned, {&seed, 1}, {&qkv, 1}), ContainsSubstring("causal"));
  const LowerContext context(graph, graph.nodes()[0], test_device().device->capabilities());
  for (const auto refuses : {refuse_attention_coopmat, refuse_attention_columns, refuse_attention_flexible,
                             refuse_attention_coopmat2}) {
    CHECK_THAT(refuses(context).value(), ContainsSubstring("causal"));
  }
}

}  // namespace vitrine::test
