#include "runtime/ops/tokens/assemble_tokens.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "runtime/util/error.h"
#include "tests/support/op_test.h"
#include "tests/support/reference.h"

namespace vitrine {
namespace {

using test::HostTensor;

struct Case {
  Shape patches;
  bool class_token = false, distillation_token = false;
  uint64_t registers = 0, positions = 0;
  DType in = DType::f32, out = DType::f32;
};

test::OpCase op_case(const Case& c, HostTensor patches) {
  const uint64_t dims = c.patches[2];
  test::OpCase result;
  result.label = c.patches.to_string() + " class " + std::to_string(c.class_token) + " distillation " +
                 std::to_string(c.distillation_token) + " registers " + std::to_string(c.registers) +
                 " positions " + std::to_string(c.positions) + " " + std::string(name_of(c.in)) + " to " +
                 std::string(name_of(c.out));
  const HostTensor given = patches;
  result.inputs = {{std::move(patches)}};
  reference::Tokens tokens;
  std::array<size_t, 4> places{};  // among the inputs; 0: left out
  const auto constant = [&](bool present, Shape shape, uint64_t seed, reference::Values& values,
                            size_t& place) {
    if (!present) return;
    place = result.inputs.size();
    result.inputs.push_back({test::random_tensor(shape, DType::f32, seed), Role::constant});
    values = result.inputs.back().tensor.values;
  };
  constant(c.class_token, {dims}, 2, tokens.class_token, places[0]);
  constant(c.distillation_token, {dims}, 3, tokens.distillation_token, places[1]);
  if (c.registers) constant(true, {c.registers, dims}, 4, tokens.registers, places[2]);
  if (c.positions) constant(true, {c.positions, dims}, 5, tokens.positions, places[3]);
  result.expected = {reference::assemble_tokens(given.values, c.patches, tokens)};
  result.build = [c, places](Graph& graph, std::span<const ValueId> in) {
    const auto optional = [&](size_t place) { return place ? in[place] : ValueId{}; };
    return std::vector{assemble_tokens(graph, "tokens", in[0],
                                       {.class_token = optional(places[0]),
                                        .distillation_token = optional(places[1]),
                                        .registers = optional(places[2]),
                                        .positions = optional(places[3]),
                                        .out = c.out})};
  };
  return result;
}

void check(const Case& c) {
  test::check_op(op_assemble_tokens, op_case(c, test::random_tensor(c.patches, c.in, 1)));
}

TEST_CASE("assemble_tokens gives the sequences of the model families") {
  check({.patches = {2, 196, 192}, .class_token = true, .positions = 197});                            // ViT
  check({.patches = {2, 49, 192}, .class_token = true, .distillation_token = true, .positions = 51});  // DeiT
  check({.patches = {2, 256, 48}, .class_token = true, .registers = 4, .positions = 257});  // DINOv2
  check({.patches = {2, 64, 768}, .positions = 64});                                        // SigLIP
  check({.patches = {3, 49, 8}, .class_token = true, .positions = 50});                     // MyViT
}

TEST_CASE("assemble_tokens gives positions to the patches, to all but registers, or to all") {
  for (const bool distillation : {false, true}) {
    for (const uint64_t registers : {0, 1, 3}) {
      const uint64_t special = 1 + (distillation ? 1 : 0);
      for (const uint64_t positions : {uint64_t{0}, uint64_t{5}, special + 5, special + registers + 5}) {
        check({{2, 5, 7}, true, distillation, registers, positions});
      }
    }
  }
  check({.patches = {2, 5, 7}, .registers = 3, .positions = 8});
  check({.patches = {2, 5, 7}, .distillation_token = true, .positions = 6});
}

TEST_CASE("assemble_tokens handles every width") {
  for (const uint64_t dims : {1, 3, 197, 1370, 4099}) {
    check({.patches = {3, 5, dims}, .class_token = true, .registers = 2, .positions = 8});
  }
}

TEST_CASE("assemble_tokens reads and writes f16") {
  for (const DType in : {DType::f32, DType::f16}) {
    for (const DType out : {DType::f32, DType::f16}) {
      check({{2, 11, 51}, true, true, 3, 13, in, out});
      check({{1, 1, 3}, true, false, 0, 2, in, out});
    }
  }
}

TEST_CASE("assemble_tokens keeps NaN and infinity in their place") {
  const Case c{.patches = {2, 5, 7}, .class_token = true, .positions = 6};
  HostTensor patches = test::random_tensor(c.patches, DType::f32, 1);
  patches.values[3] = std::numeric_limits<double>::quiet_NaN();
  patches.values[44] = -std::numeric_limits<double>::infinity();
  test::OpCase nonfinite = op_case(c, std::move(patches));
  nonfinite.allow_nonfinite = true;
  test::check_op(op_assemble_tokens, nonfinite);
}

TEST_CASE("assemble_tokens refuses a number of positions that fits no rule") {
  Graph graph;
  const ValueId patches = graph.input("patches", {2, 5, 7});
  const ValueId class_token = graph.constant("class", {7}), positions = graph.constant("positions", {9, 7});
  CHECK_THROWS_MATCHES(
      assemble_tokens(graph, "tokens", patches, {.class_token = class_token, .positions = positions}), Error,
      Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring("there are 9 positions")));
}

}  // namespace
}  // namespace vitrine
