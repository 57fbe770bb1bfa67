// Attention whose scores have a bias by where the key's patch lies, seen from the query's.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/attention/attention_bias_gradient.h"
#include "runtime/ops/attention/attention_gradient.h"
#include "runtime/ops/attention/attention_kernels.h"
#include "runtime/ops/attention/attention_rows.h"
#include "runtime/ops/attention/plain_attention.h"
#include "runtime/ops/explain/attention_heat.h"
#include "runtime/util/error.h"
#include "tests/support/gradient_test.h"
#include "tests/support/op_test.h"
#include "tests/support/reference_matmul.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using reference::RelativeGrid;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

// One projection's output, whose parts are q, k and v, and a table.
struct Case {
  RelativeGrid grid;
  uint64_t batch = 1, heads = 1, width = 64;
  bool causal = false, rounded = false;
  bool by_rows = false;  // what SAM adds, in place of a table

  uint64_t row() const { return 3 * heads * width; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(width)); }
  AttentionOptions options(ValueId bias) const {
    return {.heads = heads,
            .key_width = width,
            .k_offset = heads * width,
            .v_offset = 2 * heads * width,
            .store_lse = true,
            .rounded = rounded,
            .causal = causal,
            .bias = by_rows ? ValueId{} : bias,
            .bias_height = grid.height,
            .bias_width = grid.width,
            .bias_first = grid.first,
            .bias_rows = by_rows ? bias : ValueId{}};
  }
  std::string label() const {
    return std::to_string(grid.height) + " x " + std::to_string(grid.width) + " patches behind " +
           std::to_string(grid.first) + ", " + std::to_string(heads) + " heads of " + std::to_string(width) +
           (by_rows ? ", by rows" : "");
  }
  // q and k up to 2, biases as large as scores.
  std::vector<OpInput> inputs(DType dtype, uint64_t seed) const {
    return {{random_tensor({batch, grid.tokens(), row()}, dtype, seed, -2, 2)},
            by_rows
                ? OpInput{random_tensor({batch, heads, grid.tokens(), grid.height + grid.width}, DType::f32,
                                        seed + 1, -3, 3)}
                : OpInput{random_tensor({grid.rows(), heads}, DType::f32, seed + 1, -3, 3), Role::constant}};
  }
  reference::Heads part(const Values& qkv, uint64_t i) const {
    return {qkv, grid.tokens(), row(), i * heads * width, width};
  }
  reference::Attention forward(const Values& qkv, const Values& table) const {
    reference::Sees sees;
    if (causal) sees = [](uint64_t query, uint64_t key) { return key <= query; };
    return reference::attention(
        part(qkv, 0), part(qkv, 1), part(qkv, 2), batch, heads, scale(), {}, sees,
        by_rows ? reference::bias_rows(grid, table, heads) : reference::relative_bias(grid, table, heads));
  }
  reference::AttentionGradients backward(const Values& qkv, const Values& table, const Values& given) const {
    return reference::attention_gradient(part(qkv, 0), part(qkv, 1), part(qkv, 2), batch, heads, scale(),
                                         given, {}, reference::relative_bias(grid, table, heads));
  }
};

// The usual tolerance is for scores of a few units; f32 rounds a score and the log-sum-exp by half of 2^-23
// of their magnitude each, which is what a weight may be off by.
double tolerance_for(DType dtype, const reference::Attention& expected) {
  double largest = 0;
  for (const double score : expected.scores) largest = std::max(largest, std::abs(score));
  return reference::usual_tolerance(dtype) + 2 * largest * 0x1p-24;
}

OpCase fused(const Case& c, DType dtype, uint64_t seed = 1) {
  OpCase result;
  result.label = c.label() + " " + std::string(name_of(dtype));
  result.inputs = c.inputs(dtype, seed);
  reference::Attention expected = c.forward(result.inputs[0].tensor.values, result.inputs[1].tensor.values);
  result.expected = {std::move(expected.out), std::move(expected.lse)};
  result.allow_nonfinite = c.grid.tokens() == 1;  // its result is its value
  result.build = [c](Graph& graph, std::span<const ValueId> ids) {
    const AttentionResult y = attention(graph, "y", ids[0], ids[0], ids[0], c.options(ids[1]));
    return std::vector{y.out, y.lse};
  };
  return result;
}

OpCase plain(const Case& c, DType dtype) {
  OpCase result = fused(c, dtype);
  reference::Attention expected = c.forward(result.inputs[0].tensor.values, result.inputs[1].tensor.values);
  result.expected = {std::move(expected.out), std::move(expected.scores), std::move(expected.weights)};
  result.build = [c](Graph& graph, std::span<const ValueId> ids) {
    const PlainAttentionResult y = plain_attention(graph, "y", ids[0], ids[0], ids[0], c.options(ids[1]));
    return std::vector{y.out, y.scores, y.weights};
  };
  return result;
}

// The weights again, behind attention, all of them or their means.
OpCase rows_again(const Case& c, DType dtype, const AttentionRowsOptions& options) {
  OpCase result = fused(c, dtype);
  const reference::Attention all = c.forward(result.inputs[0].tensor.values, result.inputs[1].tensor.values);
  result.tolerance = tolerance_for(DType::f32, all);
  const uint64_t tokens = c.grid.tokens();
  const uint64_t rows = options.rows != 0 ? options.rows : tokens - options.first_row;
  const uint64_t heads_out = options.mean_heads ? 1 : c.heads, rows_out = options.mean_rows ? 1 : rows;
  std::vector<double> expected(c.batch * heads_out * rows_out * tokens);
  for (uint64_t b = 0; b < c.batch; ++b) {
    for (uint64_t h = 0; h < c.heads; ++h) {
      for (uint64_t n = 0; n < rows; ++n) {
        for (uint64_t m = 0; m < tokens; ++m) {
          const uint64_t map = b * heads_out + (options.mean_heads ? 0 : h);
          expected[(map * rows_out + (options.mean_rows ? 0 : n)) * tokens + m] +=
              all.weights[((b * c.heads + h) * tokens + options.first_row + n) * tokens + m] /
              static_cast<double>((options.mean_heads ? c.heads : 1) * (options.mean_rows ? rows : 1));
        }
      }
    }
  }
  result.expected = {std::move(expected)};
  result.build = [c, options](Graph& graph, std::span<const ValueId> ids) {
    const AttentionOptions attended = c.options(ids[1]);
    const AttentionResult y = attention(graph, "y", ids[0], ids[0], ids[0], attended);
    return std::vector{attention_rows(graph, "rows", ids[0], ids[0], y.lse, attended, options)};
  };
  return result;
}

// The derivative alone, of what the reference gives.
OpCase gradient(const Case& c, uint64_t seed) {
  OpCase result;
  result.label = c.label();
  result.inputs = c.inputs(DType::f32, seed);
  const Values qkv = result.inputs[0].tensor.values, table = result.inputs[1].tensor.values;
  const reference::Attention expected = c.forward(qkv, table);
  result.tolerance = tolerance_for(DType::f32, expected);
  const Shape out{c.batch, c.grid.tokens(), c.heads * c.width};
  for (const auto& [shape, values] :
       {std::pair{out, &expected.out}, {Shape{c.batch, c.heads, c.grid.tokens()}, &expected.lse}}) {
    HostTensor& tensor = result.inputs.emplace_back(OpInput{{shape, DType::f32, *values}}).tensor;
    for (double& value : tensor.values) value = round_to(DType::f32, value);
  }
  result.inputs.push_back({random_tensor(out, DType::f32, seed + 4)});
  const reference::AttentionGradients gradients = c.backward(qkv, table, result.inputs.back().tensor.values);
  Values sum = gradients.q;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += gradients.k[i] + gradients.v[i];
  result.expected = {std::move(sum)};
  result.build = [c](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{
        attention_gradient(graph, "g", ids[0], ids[0], ids[0], ids[2], ids[3], ids[4], c.options(ids[1])).q};
  };
  return result;
}

// The table's gradient by the formula of the kernel, of whatever result and log-sum-exp attention gave.
Values gradient_of_table(const Case& c, std::span<const Values> in) {
  const reference::Heads q = c.part(in[0], 0), k = c.part(in[0], 1), v = c.part(in[0], 2);
  const uint64_t tokens = c.grid.tokens();
  Values scores(c.batch * c.heads * tokens * tokens);
  for (uint64_t i = 0; i < scores.size(); ++i) {
    const uint64_t key = i % tokens, query = i / tokens % tokens, head = i / tokens / tokens % c.heads,
                   image = i / tokens / tokens / c.heads;
    double dot = 0, gradient = 0;
    for (uint64_t d = 0; d < c.width; ++d) {
      const uint64_t at = ((image * tokens + query) * c.heads + head) * c.width + d;
      dot += q.at(image, query, head, d) * k.at(image, key, head, d);
      gradient += in[4][at] * (v.at(image, key, head, d) - in[2][at]);
    }
    dot = dot * c.scale() + in[1][c.grid.row(query, key) * c.heads + head];
    scores[i] = std::exp(dot - in[3][i / tokens]) * gradient;
  }
  return reference::relative_bias_gradient(c.grid, scores, c.batch, c.heads);
}

OpCase bias_gradient(const Case& c, uint64_t seed) {
  OpCase result = gradient(c, seed);
  std::vector<Values> in;
  for (const OpInput& input : result.inputs) in.push_back(input.tensor.values);
  const reference::AttentionGradients gradients = c.backward(in[0], in[1], in[4]);
  result.expected = {reference::relative_bias_gradient(c.grid, gradients.scores, c.batch, c.heads)};
  result.allow_nonfinite = c.grid.tokens() == 1;
  result.build = [c](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{attention_bias_gradient(graph, "g", ids[0], ids[0], ids[0], ids[2], ids[3], ids[4],
                                               c.options(ids[1]))};
  };
  return result;
}

// Each is code of its own that has to be compiled.
constexpr Case small[] = {{{1, 1, 1}, 2, 3, 32}, {{3, 5, 0}, 2, 3, 32}, {{5, 3, 1}, 1, 12, 5}};
constexpr Case usual[] = {{{7, 7, 1}, 1, 3, 80}, {{14, 14, 0}, 1, 2, 64}, {{14, 14, 1}, 1, 1, 32}};

}  // namespace

// What timm 1.0.31's gen_relative_position_index((2, 3), class_token=True) gives, row by row.
TEST_CASE("the row of a table of relative positions is the one that BEiT's index has") {
  constexpr std::array<std::array<uint64_t, 7>, 7> index{{
      {17, 15, 15, 15, 15, 15, 15},
      {16, 7, 6, 5, 2, 1, 0},
      {16, 8, 7, 6, 3, 2, 1},
      {16, 9, 8, 7, 4, 3, 2},
      {16, 12, 11, 10, 7, 6, 5},
      {16, 13, 12, 11, 8, 7, 6},
      {16, 14, 13, 12, 9, 8, 7},
  }};
  const RelativeGrid grid{2, 3, 1};
  REQUIRE(grid.rows() == 18);
  for (uint64_t query = 0; query < 7; ++query) {
    for (uint64_t key = 0; key < 7; ++key) CHECK(grid.row(query, key) == index.at(query).at(key));
  }
}

TEST_CASE("attention with a relative bias matches the float64 reference") {
  for (const Case& c : small) check_op(op_attention, fused(c, DType::f32));
  for (const Case& c : usual) check_op(op_attention, fused(c, DType::f32));
  for (const Case& c : {small[1], usual[2]}) check_op(op_attention, fused(c, DType::f16));
  check_op(op_attention, fused({{1, 1, 0}, 2, 3, 32}, DType::f32));
  check_op(op_attention, fused({{1, 7, 1}, 1, 1, 256}, DType::f32));
}

TEST_CASE("every configuration of attention with a relative bias gives the same") {
  check_configurations(op_attention, fused({{8, 9, 1}, 1, 2, 20}, DType::f32));
}

// Matrix units multiply f16, and f32 that may be rounded.
TEST_CASE("what is rounded has its relative bias as it is") {
  OpCase rounded = fused({.grid = {5, 8, 1}, .heads = 2, .width = 20, .rounded = true}, DType::f32);
  rounded.tolerance = reference::usual_tolerance(DType::f16);
  check_configurations(op_attention, rounded);
}

TEST_CASE("attention may be causal and have a relative bias") {
  check_op(op_attention, fused({.grid = {4, 7, 1}, .heads = 2, .width = 16, .causal = true}, DType::f32));
}

TEST_CASE("what is dropped may have a relative bias") {
  size_t checked = 0;
  for (const OpDef* op : {&op_attention, &op_attention_gradient}) {
    for (const OpCase& c : op->cases()) {
      if (c.label.find("dropout, biased") == c.label.npos) continue;
      check_op(*op, c);
      ++checked;
    }
  }
  CHECK(checked == 2);
}

TEST_CASE("a relative bias lets NaN and infinity through, and only where they belong") {
  const Case c{{3, 5, 1}, 1, 2, 8};
  const OpCase finite = fused(c, DType::f32);
  check_nan(op_attention, finite, [c](auto values) {
    reference::Attention expected = c.forward(values[0], values[1]);
    return Results{std::move(expected.out), std::move(expected.lse)};
  });
  // Of the table's rows the last three, the class token's, and that of two patches far apart; -inf is a mask.
  for (const double value : {nan, inf, -inf}) {
    for (const uint64_t row : {c.grid.rows() - 1, c.grid.rows() - 2, c.grid.rows() - 3, uint64_t{0}}) {
      OpCase changed = finite;
      changed.allow_nonfinite = true;
      changed.inputs[1].tensor.values[row * 2 + 1] = value;
      reference::Attention expected =
          c.forward(changed.inputs[0].tensor.values, changed.inputs[1].tensor.values);
      changed.expected = {std::move(expected.out), std::move(expected.lse)};
      check_op(op_attention, changed);
    }
  }
}

TEST_CASE("plain_attention with a relative bias matches the float64 reference") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Case& c : small) check_op(op_plain_attention, plain(c, dtype));
    check_op(op_plain_attention, plain({{7, 7, 1}, 1, 3, 80}, dtype));
  }
}

TEST_CASE("attention_rows with a relative bias are attention's weights") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Case& c : small) check_op(op_attention_rows, rows_again(c, dtype, {}));
    check_op(op_attention_rows,
             rows_again({{7, 7, 1}, 2, 3, 32}, dtype, {.first_row = 1, .mean_rows = true}));
  }
  check_op(op_attention_rows, rows_again({{14, 14, 1}, 1, 2, 64}, DType::f32, {.mean_heads = true}));
  check_op(op_attention_rows, rows_again({{3, 5, 1}, 2, 3, 8}, DType::f32, {.rows = 1, .mean_heads = true}));
}

constexpr Case by_rows[] = {{.grid = {1, 1}, .batch = 2, .heads = 3, .width = 32, .by_rows = true},
                            {.grid = {5, 3}, .batch = 2, .heads = 3, .width = 5, .by_rows = true},
                            {.grid = {7, 7}, .batch = 1, .heads = 12, .width = 80, .by_rows = true},
                            {.grid = {14, 14}, .batch = 1, .heads = 2, .width = 64, .by_rows = true}};

TEST_CASE("attention with rows of relative biases matches the float64 reference") {
  for (const Case& c : by_rows) check_op(op_attention, fused(c, DType::f32));
  check_op(op_attention, fused(by_rows[1], DType::f16));
  OpCase rounded =
      fused({.grid = {5, 3}, .heads = 2, .width = 64, .rounded = true, .by_rows = true}, DType::f32);
  rounded.tolerance = reference::usual_tolerance(DType::f16);
  check_op(op_attention, rounded);
}

TEST_CASE("what computes weights again takes rows of relative biases, too") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    check_op(op_plain_attention, plain(by_rows[1], dtype));
    check_op(op_attention_rows, rows_again(by_rows[1], dtype, {}));
    check_op(op_attention_rows, rows_again(by_rows[2], dtype, {.first_row = 3, .mean_heads = true}));
  }
}

TEST_CASE("rows of relative biases let NaN and infinity through, and only where they belong") {
  const Case c{.grid = {3, 5}, .heads = 2, .width = 8, .by_rows = true};
  const OpCase finite = fused(c, DType::f32);
  check_nan(op_attention, finite, [c](auto values) {
    reference::Attention expected = c.forward(values[0], values[1]);
    return Results{std::move(expected.out), std::move(expected.lse)};
  });
  for (const double value : {inf, -inf}) {
    OpCase changed = finite;
    changed.allow_nonfinite = true;
    changed.inputs[1].tensor.values[9 * 8 + 4] = value;  // of a query, for keys in the second column
    reference::Attention expected =
        c.forward(changed.inputs[0].tensor.values, changed.inputs[1].tensor.values);
    changed.expected = {std::move(expected.out), std::move(expected.lse)};
    check_op(op_attention, changed);
  }
}

TEST_CASE("attention_gradient with a relative bias matches the float64 reference") {
  uint64_t seed = 10;
  for (const Case& c : small) check_op(op_attention_gradient, gradient(c, seed += 10));
  for (const Case& c : usual) check_op(op_attention_gradient, gradient(c, seed += 10));
  check_configurations(op_attention_gradient, gradient({{5, 8, 1}, 1, 2, 12}, seed += 10));
}

TEST_CASE("attention_bias_gradient matches the float64 reference") {
  uint64_t seed = 100;
  for (const auto& sizes : {std::span(small), std::span(usual)}) {
    for (const Case& c : sizes) check_op(op_attention_bias_gradient, bias_gradient(c, seed += 10));
  }
  for (const OpCase& c : attention_bias_gradient_cases()) check_op(op_attention_bias_gradient, c);
}

TEST_CASE("attention_bias_gradient makes NaN of what a NaN reaches") {
  const Case c{{3, 2, 1}, 2, 2, 5};
  check_nan(op_attention_bias_gradient, bias_gradient(c, 7),
            [c](auto in) { return Results{gradient_of_table(c, in)}; });
}

TEST_CASE("attention_heat with a relative bias shows attention's weights") {
  for (const OpCase& c : attention_heat_cases()) check_op(op_attention_heat, c);
}

TEST_CASE("attention with a relative bias has a derivative, whether it kept its log-sum-exp or not") {
  for (const bool store_lse : {false, true}) {
    const Case c{{2, 4, 1}, 2, 2, 5};
    GradientCase g;
    g.label = c.label();
    g.inputs = c.inputs(DType::f32, 3);
    g.inputs[1].role = Role::input;  // it is learned
    g.build = [=](Graph& graph, std::span<const ValueId> ids) {
      AttentionOptions options = c.options(ids[1]);
      options.store_lse = store_lse;
      return std::vector{attention(graph, "y", ids[0], ids[0], ids[0], options).out};
    };
    g.forward = [=](auto in) { return Results{c.forward(in[0], in[1]).out}; };
    g.backward = [=](auto in, auto given) {
      const reference::AttentionGradients made = c.backward(in[0], in[1], given[0]);
      Values sum = made.q;
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += made.k[i] + made.v[i];
      return Results{std::move(sum),
                     reference::relative_bias_gradient(c.grid, made.scores, c.batch, c.heads)};
    };
    check_gradients(g);
  }
}

TEST_CASE("what has a relative bias says what is wrong with it") {
  Graph graph;
  const ValueId x = graph.input("x", {1, 7, 96}, DType::f16), lse = graph.input("lse", {1, 2, 7}),
                table = graph.input("table", {18, 2}), other = graph.input("other", {15, 2}),
                half = graph.input("half", {18, 2}, DType::f16),
                longer = graph.input("k", {1, 8, 96}, DType::f16);
  const auto options = [](ValueId bias, RelativeGrid grid) { return Case{grid, 1, 2, 16}.options(bias); };
  const auto attend = [&](ValueId k, ValueId bias, RelativeGrid grid) {
    return attention(graph, "y", x, k, k, options(bias, grid));
  };
  const RelativeGrid right{2, 3, 1};
  CHECK_NOTHROW(attend(x, table, right));
  CHECK_THROWS_WITH(attend(x, {}, right), ContainsSubstring("no table"));
  CHECK_THROWS_WITH(attend(x, other, right), ContainsSubstring("f32 [15, 2], f32 [18, 2] was expected"));
  CHECK_THROWS_WITH(attend(x, half, right), ContainsSubstring("f16 [18, 2], f32 [18, 2] was expected"));
  CHECK_THROWS_WITH(attend(x, table, {2, 3, 0}), ContainsSubstring("7 queries and 7 keys, 6 were expected"));
  CHECK_THROWS_WITH(attend(x, table, {3, 2, 2}), ContainsSubstring("2 tokens in front"));
  CHECK_THROWS_WITH(attend(x, table, {0, 3, 1}), ContainsSubstring("0 x 3 patches"));
  CHECK_THROWS_WITH(attend(longer, table, right), ContainsSubstring("7 queries and 8 keys"));
  CHECK_THROWS_WITH(plain_attention(graph, "p", x, x, x, options(other, right)),
                    ContainsSubstring("[18, 2]"));
  CHECK_THROWS_WITH(attention_rows(graph, "r", x, x, lse, options(other, right)),
                    ContainsSubstring("[18, 2]"));
  CHECK_THROWS_WITH(attention_heat(graph, "h", x, x, lse, graph.input("choice", {1}, DType::u32),
                                   graph.input("colors", {256}, DType::u32), options(other, right),
                                   {.first = 1, .height = 2, .width = 3}),
                    ContainsSubstring("[18, 2]"));
  AttentionOptions rows = options({}, {1, 7, 0});
  rows.bias_rows = graph.input("rows", {1, 2, 7, 8});
  CHECK_NOTHROW(attention(graph, "rows", x, x, x, rows));
  rows.bias_rows = lse;
  CHECK_THROWS_WITH(attention(graph, "y", x, x, x, rows), ContainsSubstring("[1, 2, 7, 8] was expected"));
  rows.bias = table;
  CHECK_THROWS_WITH(attention(graph, "y", x, x, x, rows),
                    ContainsSubstring("a table of relative biases and"));
  rows = options({}, right);
  rows.bias_rows = lse;
  CHECK_THROWS_WITH(attention(graph, "y", x, x, x, rows), ContainsSubstring("a token is in front"));
  Graph learned;
  const ValueId qkv = learned.input("x", {1, 7, 96});
  rows = options({}, {1, 7, 0});
  rows.bias_rows = learned.input("rows", {1, 2, 7, 8});
  const ValueId out = attention(learned, "y", qkv, qkv, qkv, rows).out;
  const GradientSeed seed{out, learned.input("dy", {1, 7, 32})};
  CHECK_THROWS_WITH(add_gradients(learned, {&seed, 1}, {&qkv, 1}), ContainsSubstring("rows of biases"));
  const LowerContext context(graph, graph.nodes()[0], test_device().device->capabilities());
  for (const auto refuses :
       {refuse_attention_columns, refuse_attention_flexible, refuse_attention_coopmat2}) {
    CHECK_THAT(refuses(context).value(), ContainsSubstring("bias"));
  }
}

}  // namespace vitrine::test
