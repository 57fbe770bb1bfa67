#include "runtime/ops/tokens/assemble_tokens_gradient.h"

#include <catch2/catch_test_macros.hpp>

#include "runtime/check/reference_gradients.h"
#include "runtime/graph/autodiff.h"
#include "runtime/ops/tokens/assemble_tokens.h"
#include "runtime/util/error.h"
#include "tests/support/gradient_test.h"

namespace vitrine {
namespace {

using test::Results;
using test::Values;

struct Case {
  Shape patches;
  bool class_token = false, distillation_token = false;
  uint64_t registers = 0;
  // Of the patches, of all tokens but the registers, of all; none.
  enum Positions { none, of_patches, without_registers, of_all } positions = none;
};

// Inputs that are there, in this order: patches, class, distillation, registers, positions.
test::GradientCase gradient_case(const Case& c) {
  const uint64_t dims = c.patches[2], patches = c.patches[1];
  const uint64_t special = uint64_t{c.class_token} + uint64_t{c.distillation_token};
  const uint64_t tokens = patches + special + c.registers;
  reference::TokenCounts counts{c.class_token, c.distillation_token, c.registers};
  if (c.positions == Case::of_patches) counts.positions = patches;
  if (c.positions == Case::without_registers) counts.positions = patches + special;
  if (c.positions == Case::of_all) counts.positions = tokens;
  test::GradientCase g;
  g.label = c.patches.to_string() + (c.class_token ? " class" : "") +
            (c.distillation_token ? " distillation" : "") + ", " + std::to_string(c.registers) +
            " registers, " + std::to_string(counts.positions) + " positions";
  g.inputs = {{test::random_tensor(c.patches, DType::f32, 1)}};
  if (c.class_token) g.inputs.push_back({test::random_tensor({dims}, DType::f32, 2)});
  if (c.distillation_token) g.inputs.push_back({test::random_tensor({dims}, DType::f32, 3)});
  if (c.registers) g.inputs.push_back({test::random_tensor({c.registers, dims}, DType::f32, 4)});
  if (counts.positions) g.inputs.push_back({test::random_tensor({counts.positions, dims}, DType::f32, 5)});
  g.build = [=](Graph& graph, std::span<const ValueId> ids) {
    size_t at = 1;
    TokenOptions options;
    if (c.class_token) options.class_token = ids[at++];
    if (c.distillation_token) options.distillation_token = ids[at++];
    if (c.registers) options.registers = ids[at++];
    if (counts.positions) options.positions = ids[at++];
    return std::vector{assemble_tokens(graph, "tokens", ids[0], options)};
  };
  g.forward = [=](std::span<const Values> in) {
    size_t at = 1;
    reference::Tokens parts;
    if (c.class_token) parts.class_token = in[at++];
    if (c.distillation_token) parts.distillation_token = in[at++];
    if (c.registers) parts.registers = in[at++];
    if (counts.positions) parts.positions = in[at++];
    return Results{reference::assemble_tokens(in[0], c.patches, parts)};
  };
  g.backward = [=](std::span<const Values>, std::span<const Values> dy) {
    reference::TokenGradients found =
        reference::assemble_tokens_gradient(dy[0], {c.patches[0], tokens, dims}, counts);
    Results results{std::move(found.patches)};
    if (c.class_token) results.push_back(std::move(found.class_token));
    if (c.distillation_token) results.push_back(std::move(found.distillation_token));
    if (c.registers) results.push_back(std::move(found.registers));
    if (counts.positions) results.push_back(std::move(found.positions));
    return results;
  };
  return g;
}

TEST_CASE("the derivative of assemble_tokens, whatever it assembles") {
  for (const uint64_t dims : {7, 12}) {
    for (const bool class_token : {false, true}) {
      for (const bool distillation : {false, true}) {
        for (const uint64_t registers : {0, 3}) {
          for (const auto positions : {Case::none, Case::of_patches, Case::without_registers, Case::of_all}) {
            test::check_gradients(
                gradient_case({{3, 5, dims}, class_token, distillation, registers, positions}));
          }
        }
      }
    }
  }
}

TEST_CASE("the derivative of assemble_tokens at real sizes") {
  test::check_gradients(gradient_case({{128, 49, 8}, true, false, 0, Case::of_all}));
  test::check_gradients(gradient_case({{2, 196, 192}, true, true, 0, Case::of_all}));
  test::check_gradients(gradient_case({{17, 9, 36}, true, false, 4, Case::without_registers}));
}

TEST_CASE("assemble_tokens_gradient gives what is asked for, in one node") {
  Graph graph;
  const ValueId patches = graph.input("patches", {2, 5, 8}), class_token = graph.input("class", {8}),
                positions = graph.input("positions", {6, 8}), dy = graph.input("dy", {2, 6, 8});
  const ValueId y =
      assemble_tokens(graph, "tokens", patches, {.class_token = class_token, .positions = positions});
  const std::vector<GradientSeed> seeds{{y, dy}};
  const std::vector<std::vector<ValueId>> all{{patches}, {class_token}, {positions}, {patches, positions}};
  for (const std::vector<ValueId>& wrt : all) {
    Graph copy = graph;
    const auto found = add_gradients(copy, seeds, wrt);
    CHECK(copy.nodes().size() == graph.nodes().size() + 1);
    for (size_t i = 0; i < wrt.size(); ++i) CHECK(copy.value(found[i]).shape == graph.value(wrt[i]).shape);
  }
  // plain_graph leaves it whole.
  CHECK(plain_graph(graph).nodes().size() == graph.nodes().size());
}

TEST_CASE("assemble_tokens_gradient refuses what does not fit") {
  Graph graph;
  const ValueId dy = graph.input("dy", {2, 6, 8});
  CHECK_THROWS_AS(assemble_tokens_gradient(graph, "g", dy, {}, {}), Error);
  CHECK_THROWS_AS(assemble_tokens_gradient(graph, "g", dy, {}, {.class_token = true}), Error);
  CHECK_THROWS_AS(assemble_tokens_gradient(graph, "g", dy, {.registers = 6}, {.patches = true}), Error);
  CHECK_THROWS_AS(assemble_tokens_gradient(graph, "g", dy, {.positions = 4}, {.positions = true}), Error);
  CHECK_THROWS_AS(assemble_tokens_gradient(graph, "g", graph.input("flat", {12, 8}), {}, {.patches = true}),
                  Error);
}

}  // namespace
}  // namespace vitrine
