#include "runtime/ops/explain/attention_rollout.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "tests/support/op_test.h"

namespace vitrine::test {
namespace {

// Weights whose rows add up to 1.
HostTensor random_maps(uint64_t batch, uint64_t tokens, uint64_t seed) {
  HostTensor maps = random_tensor({batch, tokens, tokens}, DType::f32, seed, 0, 1);
  for (uint64_t row = 0; row < batch * tokens; ++row) {
    double sum = 0;
    for (uint64_t j = 0; j < tokens; ++j) {
      double& weight = maps.values[row * tokens + j];
      weight = weight * weight * weight;
      sum += weight;
    }
    for (uint64_t j = 0; j < tokens; ++j) {
      double& weight = maps.values[row * tokens + j];
      weight = round_to(DType::f32, weight / sum);
    }
  }
  return maps;
}

// As the paper has it: whole matrices, from the first layer to the last.
std::vector<double> rollout(const std::vector<HostTensor>& layers) {
  const uint64_t batch = layers[0].shape[0], n = layers[0].shape[1];
  std::vector<double> joint(batch * n * n);
  for (uint64_t b = 0; b < batch; ++b) {
    for (uint64_t i = 0; i < n; ++i) joint[(b * n + i) * n + i] = 1;
  }
  for (const HostTensor& layer : layers) {
    std::vector<double> next(batch * n * n);
    for (uint64_t b = 0; b < batch; ++b) {
      for (uint64_t i = 0; i < n; ++i) {
        std::vector<double> row(n);
        double sum = 0;
        for (uint64_t j = 0; j < n; ++j) {
          sum += row[j] = 0.5 * layer.values[(b * n + i) * n + j] + (i == j ? 0.5 : 0.0);
        }
        for (uint64_t m = 0; m < n; ++m) {
          for (uint64_t j = 0; j < n; ++j) {
            next[(b * n + i) * n + j] += row[m] / sum * joint[(b * n + m) * n + j];
          }
        }
      }
    }
    joint = std::move(next);
  }
  return joint;
}

// The rows that are asked for, of the product of whole matrices.
std::vector<double> rows_of(const std::vector<HostTensor>& layers, const RolloutRows& which) {
  const uint64_t batch = layers[0].shape[0], tokens = layers[0].shape[1];
  const std::vector<double> all = rollout(layers);
  const uint64_t rows = which.rows != 0 ? which.rows : tokens - which.first_row;
  std::vector<double> expected(batch * (which.mean_rows ? 1 : rows) * tokens);
  for (uint64_t b = 0; b < batch; ++b) {
    for (uint64_t r = 0; r < rows; ++r) {
      for (uint64_t j = 0; j < tokens; ++j) {
        const uint64_t to = which.mean_rows ? b : b * rows + r;
        expected[to * tokens + j] += all[(b * tokens + which.first_row + r) * tokens + j] /
                                     (which.mean_rows ? static_cast<double>(rows) : 1.0);
      }
    }
  }
  return expected;
}

struct Case {
  OpCase op_case;
  Reference reference;
};

Case case_of(uint64_t batch, uint64_t tokens, uint64_t depth, const RolloutRows& which, uint64_t seed) {
  OpCase c;
  c.label = std::to_string(depth) + " layers of " + std::to_string(tokens) + " tokens";
  std::vector<HostTensor> layers;
  for (uint64_t i = 0; i < depth; ++i) layers.push_back(random_maps(batch, tokens, seed + i));
  // Rows that don't add up to 1 have to be brought back to it.
  for (uint64_t j = 0; j < tokens; ++j) layers[0].values[j] *= 2;
  for (const HostTensor& layer : layers) c.inputs.push_back({layer});
  c.build = [=](Graph& graph, std::span<const ValueId> maps) -> std::vector<ValueId> {
    ValueId rows = attention_rollout(graph, "last", maps[depth - 1], which);
    for (uint64_t i = depth - 1; i-- > 0;)
      rows = attention_rollout(graph, "layer" + std::to_string(i), maps[i], rows);
    return {rows};
  };
  c.expected = {rows_of(layers, which)};
  return {std::move(c), [=](std::span<const std::vector<double>> values) {
            std::vector<HostTensor> changed = layers;
            for (size_t i = 0; i < changed.size(); ++i) changed[i].values = values[i];
            return Results{rows_of(changed, which)};
          }};
}

void check(uint64_t batch, uint64_t tokens, uint64_t depth, const RolloutRows& which, uint64_t seed) {
  check_op(op_attention_rollout, case_of(batch, tokens, depth, which, seed).op_case);
}

}  // namespace

TEST_CASE("attention_rollout matches the product of whole matrices in float64") {
  check(1, 2, 1, {}, 1);
  check(2, 5, 3, {}, 10);
  check(2, 17, 4, {.rows = 1}, 20);
  check(1, 50, 12, {.rows = 1}, 30);
  check(2, 37, 3, {.first_row = 36, .rows = 1}, 50);
  check(1, 37, 3, {.first_row = 5, .rows = 7}, 60);
  check(2, 37, 3, {.first_row = 1, .mean_rows = true}, 70);
  check(1, 197, 3, {}, 80);
}

TEST_CASE("attention_rollout makes NaN of what a NaN reaches, wherever it stands") {
  for (const RolloutRows& which : {RolloutRows{}, RolloutRows{.first_row = 1, .mean_rows = true}}) {
    const Case c = case_of(2, 9, 3, which, 90);
    check_nan(op_attention_rollout, c.op_case, c.reference);
  }
}

TEST_CASE("attention_rollout names what is wrong with its inputs") {
  Graph graph;
  const ValueId maps = graph.input("maps", {2, 5, 5}), start = graph.input("start", {2, 3, 5});
  CHECK_NOTHROW(attention_rollout(graph, "right", maps, start));
  CHECK_NOTHROW(attention_rollout(graph, "last", maps, RolloutRows{.first_row = 4}));
  CHECK_THROWS(attention_rollout(graph, "a", maps, RolloutRows{.first_row = 5}));
  CHECK_THROWS(attention_rollout(graph, "b", start, maps));
  CHECK_THROWS(attention_rollout(graph, "c", maps, graph.input("narrow", {2, 3, 4})));
}

}  // namespace vitrine::test
