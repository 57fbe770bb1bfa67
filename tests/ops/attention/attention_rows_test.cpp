#include "runtime/ops/attention/attention_rows.h"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "tests/support/op_test.h"
#include "tests/support/reference_matmul.h"

namespace vitrine::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

struct Size {
  uint64_t batch, heads, queries, keys, width;
};

// q and k, each with elements before and behind its heads, and the log-sum-exp that belongs to them.
struct Inputs {
  Size size;
  AttentionOptions attended;
  HostTensor q, k, lse;
  std::vector<double> weights;  // [batch, heads, queries, keys]

  reference::Attention attend() const {
    return reference::attention({q.values, size.queries, q.shape[2], attended.q_offset, size.width},
                                {k.values, size.keys, k.shape[2], attended.k_offset, size.width},
                                {k.values, size.keys, k.shape[2], attended.k_offset, size.width}, size.batch,
                                size.heads, attended.scale);
  }

  // After a change of q or k.
  void refer() {
    const reference::Attention all = attend();
    lse.shape = {size.batch, size.heads, size.queries};
    lse.values = all.lse;
    for (double& value : lse.values) value = round_to(DType::f32, value);
    weigh(all.scores);
  }

  // After a change of lse.
  void weigh(const std::vector<double>& scores) {
    weights.clear();
    for (size_t i = 0; i < scores.size(); ++i) {
      weights.push_back(std::exp(scores[i] - lse.values[i / size.keys]));
    }
  }
};

Inputs random_inputs(Size s, DType dtype, uint64_t seed, uint64_t offset = 0, uint64_t margin = 0) {
  Inputs in;
  in.size = s;
  in.attended = {.heads = s.heads,
                 .key_width = s.width,
                 .q_offset = offset,
                 .k_offset = 2 * offset,
                 .scale = 1 / std::sqrt(static_cast<double>(s.width))};
  in.q = random_tensor({s.batch, s.queries, offset + s.heads * s.width + margin}, dtype, seed, -2, 2);
  in.k = random_tensor({s.batch, s.keys, 2 * offset + s.heads * s.width + margin}, dtype, seed + 1, -2, 2);
  in.refer();
  return in;
}

OpCase rows_of(const Inputs& in, const AttentionRowsOptions& options) {
  const Size& s = in.size;
  const uint64_t rows = options.rows != 0 ? options.rows : s.queries - options.first_row;
  OpCase c;
  c.label = std::to_string(s.batch) + "x" + std::to_string(s.heads) + " heads of " + std::to_string(s.width) +
            ", " + std::to_string(s.queries) + " queries, " + std::to_string(s.keys) + " keys, rows " +
            std::to_string(options.first_row) + "+" + std::to_string(rows) +
            (options.mean_heads ? ", mean of heads" : "") + (options.mean_rows ? ", mean of rows, " : ", ") +
            std::string(name_of(in.q.dtype));
  c.inputs = {{in.q}, {in.k}, {in.lse}};
  c.build = [attended = in.attended, options](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{attention_rows(graph, "y", ids[0], ids[1], ids[2], attended, options)};
  };
  const uint64_t heads_out = options.mean_heads ? 1 : s.heads, rows_out = options.mean_rows ? 1 : rows;
  std::vector<double> expected(s.batch * heads_out * rows_out * s.keys);
  for (uint64_t b = 0; b < s.batch; ++b) {
    for (uint64_t h = 0; h < s.heads; ++h) {
      for (uint64_t n = 0; n < rows; ++n) {
        for (uint64_t m = 0; m < s.keys; ++m) {
          const uint64_t map = b * heads_out + (options.mean_heads ? 0 : h);
          expected[(map * rows_out + (options.mean_rows ? 0 : n)) * s.keys + m] +=
              in.weights[((b * s.heads + h) * s.queries + options.first_row + n) * s.keys + m] /
              static_cast<double>((options.mean_heads ? s.heads : 1) * (options.mean_rows ? rows : 1));
        }
      }
    }
  }
  c.expected = {std::move(expected)};
  return c;
}

constexpr std::array<std::pair<bool, bool>, 4> all_means{
    {{false, false}, {true, false}, {false, true}, {true, true}}};

}  // namespace

TEST_CASE("attention_rows matches the float64 reference, whatever is averaged") {
  uint64_t seed = 10;
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Size size : {Size{1, 1, 2, 3, 4},
                            {2, 2, 5, 7, 4},
                            {2, 3, 17, 17, 48},
                            {1, 2, 37, 41, 64},
                            {1, 4, 33, 65, 80},
                            {1, 2, 16, 8, 7}}) {
      const Inputs in = random_inputs(size, dtype, seed += 10);
      for (const auto& [heads, rows] : all_means) {
        OpCase c = rows_of(in, {.mean_heads = heads, .mean_rows = rows});
        c.tolerance = 2e-6;  // q and k are exact in f16 as well, and the weights are f32
        check_op(op_attention_rows, c);
      }
    }
  }
}

TEST_CASE("attention_rows has the class token's row and any range of rows") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const Inputs in = random_inputs({2, 3, 50, 53, 48}, dtype, 7, 3, 5);
    for (const AttentionRowsOptions& options : {AttentionRowsOptions{.rows = 1},
                                                {.first_row = 49, .rows = 1},
                                                {.first_row = 5},
                                                {.first_row = 3, .rows = 19}}) {
      for (const auto& [heads, rows] : all_means) {
        AttentionRowsOptions both = options;
        both.mean_heads = heads;
        both.mean_rows = rows;
        check_op(op_attention_rows, rows_of(in, both));
      }
    }
  }
}

TEST_CASE("attention_rows keeps its accuracy at a ViT's sizes") {
  const Inputs base = random_inputs({1, 12, 197, 197, 64}, DType::f32, 11);
  check_op(op_attention_rows, rows_of(base, {.rows = 1}));
  check_op(op_attention_rows, rows_of(base, {.mean_heads = true}));
  check_op(op_attention_rows, rows_of(base, {.first_row = 1, .mean_rows = true}));
  check_op(op_attention_rows, rows_of(random_inputs({1, 2, 65, 65, 128}, DType::f16, 12), {}));
  check_op(op_attention_rows, rows_of(random_inputs({1, 1, 17, 33, 256}, DType::f32, 13), {}));
  check_op(op_attention_rows, rows_of(random_inputs({1, 1, 5, 9, 260}, DType::f32, 14), {}));
  check_op(op_attention_rows, rows_of(random_inputs({1, 3, 577, 577, 64}, DType::f16, 15),
                                      {.first_row = 1, .mean_heads = true, .mean_rows = true}));
}

TEST_CASE("attention_rows reads the log-sum-exp that attention stores") {
  constexpr uint64_t batch = 2, tokens = 50, heads = 3, width = 24;
  const AttentionOptions options{.heads = heads,
                                 .key_width = width,
                                 .k_offset = heads * width,
                                 .v_offset = 2 * heads * width,
                                 .scale = 0.25,
                                 .store_lse = true};
  for (const DType dtype : {DType::f32, DType::f16}) {
    const HostTensor qkv = random_tensor({batch, tokens, 3 * heads * width}, dtype, 5, -2, 2);
    const auto part = [&](uint64_t i) {
      return reference::Heads{qkv.values, tokens, 3 * heads * width, i * heads * width, width};
    };
    OpCase c;
    c.label = "behind attention";
    c.inputs = {{qkv}};
    c.build = [=](Graph& graph, std::span<const ValueId> ids) -> std::vector<ValueId> {
      const AttentionResult result = attention(graph, "a", ids[0], ids[0], ids[0], options);
      return {attention_rows(graph, "y", ids[0], ids[0], result.lse, options)};
    };
    c.expected = {reference::attention(part(0), part(1), part(2), batch, heads, 0.25).weights};
    for (const OpDef* op : {&op_attention_rows, &op_attention}) check_op(*op, c);
  }
}

TEST_CASE("attention_rows lets NaN and infinity through, and only where they belong") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const auto check = [](Inputs& in) {
      in.refer();
      for (const auto& [heads, rows] : all_means) {
        OpCase c = rows_of(in, {.mean_heads = heads, .mean_rows = rows});
        c.allow_nonfinite = true;
        check_op(op_attention_rows, c);
      }
    };
    const Size size{1, 2, 19, 37, 16};
    const uint64_t q_width = 2 * 16;
    Inputs query = random_inputs(size, dtype, 5);
    query.q.values[18 * q_width + 15] = std::numeric_limits<double>::quiet_NaN();  // head 0, the last row
    query.q.values[2 * q_width + 16] = inf;                                        // head 1
    check(query);

    Inputs masked = random_inputs(size, dtype, 6);  // keys that no query sees
    for (uint64_t n = 0; n < 19; ++n) masked.q.values[n * q_width + 3] = 1;
    for (uint64_t m = 0; m < 30; ++m) masked.k.values[m * q_width + 3] = -inf;
    check(masked);

    Inputs nothing = random_inputs(size, dtype, 7);  // queries that see no key at all
    for (uint64_t n = 0; n < 19; ++n) nothing.q.values[n * q_width + 3] = 1;
    for (uint64_t m = 0; m < 37; ++m) nothing.k.values[m * q_width + 3] = -inf;
    check(nothing);
  }
}

TEST_CASE("attention_rows makes NaN of what a NaN reaches, wherever it stands") {
  for (const auto& [heads, rows] : all_means) {
    const AttentionRowsOptions options{.mean_heads = heads, .mean_rows = rows};
    const Inputs in = random_inputs({1, 2, 19, 37, 16}, DType::f32, 5);
    check_nan(op_attention_rows, rows_of(in, options), [=](auto values) {
      Inputs changed = in;
      changed.q.values = values[0];
      changed.k.values = values[1];
      changed.lse.values = values[2];
      changed.weigh(changed.attend().scores);
      return rows_of(changed, options).expected;
    });
  }
}

TEST_CASE("attention_rows names what is wrong with its inputs") {
  Graph graph;
  const ValueId q = graph.input("q", {1, 5, 24}), k = graph.input("k", {1, 7, 24}),
                lse = graph.input("lse", {1, 3, 5});
  const AttentionOptions attended{.heads = 3, .key_width = 8};
  CHECK_NOTHROW(attention_rows(graph, "right", q, k, lse, attended, {.first_row = 4}));
  CHECK_THROWS(attention_rows(graph, "a", q, k, lse, attended, {.first_row = 5}));
  CHECK_THROWS(attention_rows(graph, "b", q, k, lse, attended, {.first_row = 4, .rows = 2}));
  CHECK_THROWS(attention_rows(graph, "c", k, q, lse, attended));
  CHECK_THROWS(attention_rows(graph, "d", q, k, lse, {.heads = 4, .key_width = 8}));
  CHECK_THROWS(attention_rows(graph, "e", q, k, q, attended));
  CHECK_THROWS(attention_rows(graph, "f", q, graph.input("h", {1, 7, 24}, DType::f16), lse, attended));
}

}  // namespace vitrine::test
