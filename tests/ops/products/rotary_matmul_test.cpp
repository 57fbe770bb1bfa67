#include "runtime/ops/products/rotary_matmul.h"

#include <catch2/catch_test_macros.hpp>

#include "runtime/check/reference_matmul.h"
#include "runtime/ops/attention/rotary.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/util/error.h"
#include "tests/support/op_test.h"
#include "tests/support/reference.h"

namespace vitrine {
namespace {

using test::HostTensor;

struct Case {
  uint64_t batch, tokens, angled;  // the last ones of the tokens have angles
  uint64_t width, turned, heads, k;
  uint64_t tables = 0;  // 0: one, for all heads
  bool bias = true;
  uint64_t columns() const { return heads * width; }
};

ValueId build(Graph& graph, std::span<const ValueId> in, const Case& c, bool halves) {
  const auto number = [](uint64_t value) { return static_cast<int64_t>(value); };
  return graph.add(op_rotary_matmul, "y", {in[0], in[1], c.bias ? in[3] : ValueId{}, {}, {}, in[2]},
                   {{"width", number(c.width)},
                    {"turned", number(c.turned)},
                    {"heads", number(c.heads)},
                    {"halves", int64_t{halves}},
                    {"back", int64_t{0}}})[0];
}

test::Results refer(const Case& c, const Shape& table, bool halves, std::span<const reference::Values> in) {
  const reference::Epilogue epilogue{.bias = c.bias ? in[3] : reference::Values()};
  const reference::Values product =
      reference::matmul(in[0], in[1], c.batch * c.tokens, c.columns(), c.k, epilogue);
  return {reference::rotary(product, {c.batch, c.tokens, c.columns()}, in[2], table,
                            {c.width, c.turned, c.heads, halves, false})};
}

test::OpCase op_case(const Case& c, DType dtype, bool halves) {
  std::vector<uint64_t> dims{c.angled, 2, c.width / 2};
  if (c.tables) dims.insert(dims.begin(), c.tables);
  const Shape table(dims);
  test::OpCase op;
  op.label = Shape{c.batch, c.tokens, c.k}.to_string() + " " + std::string(name_of(dtype)) + " to " +
             std::to_string(c.heads) + " heads of " + std::to_string(c.width) +
             (halves ? " in halves" : " in neighbours");
  op.inputs = {{test::random_tensor({c.batch, c.tokens, c.k}, dtype, 1)},
               {test::random_tensor({c.columns(), c.k}, dtype, 2), Role::constant},
               {test::random_tensor(table, DType::f32, 3, -1, 1), Role::constant}};
  if (c.bias) op.inputs.push_back({test::random_tensor({c.columns()}, DType::f32, 4), Role::constant});
  std::vector<reference::Values> values;
  for (const auto& input : op.inputs) values.push_back(input.tensor.values);
  op.expected = refer(c, table, halves, values);
  op.build = [=](Graph& graph, std::span<const ValueId> in) {
    return std::vector{build(graph, in, c, halves)};
  };
  return op;
}

void check(const Case& c, void (*check_case)(const OpDef&, const test::OpCase&) = test::check_op) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const bool halves : {false, true}) check_case(op_rotary_matmul, op_case(c, dtype, halves));
  }
}

TEST_CASE("rotary_matmul turns the queries and keys of models' sizes") {
  check({1, 201, 196, 64, 24, 36, 768});  // DINOv3 B, of which the values come along
  check({2, 101, 96, 64, 12, 18, 384});   // DINOv3 S, pictures that aren't square
  check({1, 50, 49, 88, 4, 6, 176});      // heads of EVA giant's width
  check({2, 17, 16, 64, 6, 6, 64, 3});    // queries alone, frequencies of every head
}

TEST_CASE("rotary_matmul takes odd sizes") {
  for (const uint64_t width : {4, 8, 12, 20, 60}) check({2, 5, 3, width, 3, 5, 37, 0, width != 12});
  check({1, 1, 1, 4, 1, 1, 1});
  check({3, 7, 7, 24, 2, 3, 8, 2, false});
}

TEST_CASE("rotary_matmul is right in every tile and slice") {
  check({2, 67, 64, 64, 2, 3, 96}, test::check_configurations);
  check({1, 37, 36, 32, 2, 3, 1536}, test::check_configurations);
}

TEST_CASE("rotary_matmul passes a NaN on to what reads it") {
  const Case c{1, 5, 3, 8, 2, 3, 12};
  for (const bool halves : {false, true}) {
    test::check_nan(op_rotary_matmul, op_case(c, DType::f32, halves),
                    [=](std::span<const reference::Values> in) { return refer(c, {3, 2, 4}, halves, in); });
  }
}

TEST_CASE("rotary_matmul refuses what does not fit") {
  Graph graph;
  const ValueId x = graph.input("x", {2, 5, 12}), weight = graph.constant("w", {24, 12});
  const ValueId table = graph.constant("t", {3, 2, 4}), bias = graph.constant("b", {24});
  const std::vector<ValueId> good{x, weight, table, bias};
  CHECK_NOTHROW(build(graph, good, {2, 5, 3, 8, 2, 3, 12}, true));
  CHECK_THROWS_AS(build(graph, good, {2, 5, 3, 8, 2, 2, 12}, true), Error);  // not all columns
  CHECK_THROWS_AS(build(graph, good, {2, 5, 3, 8, 4, 3, 12}, true), Error);  // more heads than there are
  CHECK_THROWS_AS(build(graph, std::vector{x, weight, graph.constant("t6", {3, 2, 3}), bias},
                        {2, 5, 3, 6, 2, 4, 12}, true),
                  Error);  // no fours
  CHECK_THROWS_AS(build(graph, std::vector{x, weight, graph.constant("long", {6, 2, 4}), bias},
                        {2, 5, 6, 8, 2, 3, 12}, true),
                  Error);
  CHECK_THROWS_AS(build(graph, std::vector{x, weight, table, graph.constant("short", {23})},
                        {2, 5, 3, 8, 2, 3, 12}, true),
                  Error);
  CHECK_THROWS_AS(
      build(graph, std::vector{x, graph.constant("v", {24, 11}), table, bias}, {2, 5, 3, 8, 2, 3, 12}, true),
      Error);
}

}  // namespace
}  // namespace vitrine
