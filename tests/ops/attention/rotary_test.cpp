#include "runtime/ops/attention/rotary.h"

#include <catch2/catch_test_macros.hpp>

#include "runtime/check/reference_gradients.h"
#include "runtime/util/error.h"
#include "tests/support/gradient_test.h"

namespace vitrine {
namespace {

using test::HostTensor;

struct Case {
  uint64_t batch, tokens, angled;  // the last ones of the tokens have angles
  uint64_t width, turned, heads;
  uint64_t margin = 0;  // columns behind the heads
  uint64_t tables = 0;  // 0: one, for all heads
};

reference::Turns turns_of(const Case& c, RotaryPairs pairs, bool back = false) {
  return {c.width, c.turned, c.heads, pairs == RotaryPairs::halves, back};
}

HostTensor table_of(const Case& c) {
  std::vector<uint64_t> dims{c.angled, 2, c.width / 2};
  if (c.tables) dims.insert(dims.begin(), c.tables);
  return test::random_tensor(Shape(dims), DType::f32, 2, -1, 1);
}

void check(const Case& c) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const RotaryPairs pairs : {RotaryPairs::neighbours, RotaryPairs::halves}) {
      for (const bool back : {false, true}) {
        const HostTensor x =
            test::random_tensor({c.batch, c.tokens, c.heads * c.width + c.margin}, dtype, 1, -2, 2);
        const HostTensor table = table_of(c);
        test::OpCase op;
        op.label = x.shape.to_string() + " " + std::string(name_of(dtype)) + " by " +
                   table.shape.to_string() +
                   (pairs == RotaryPairs::halves ? " in halves" : " in neighbours") + (back ? " back" : "");
        op.expected = {
            reference::rotary(x.values, x.shape, table.values, table.shape, turns_of(c, pairs, back))};
        op.inputs = {{x}, {table, Role::constant}};
        op.build = [=](Graph& graph, std::span<const ValueId> in) {
          return std::vector{
              rotary(graph, "y", in[0], in[1],
                     {.width = c.width, .turned = c.turned, .heads = c.heads, .pairs = pairs, .back = back})};
        };
        test::check_op(op_rotary, op);
      }
    }
  }
}

TEST_CASE("rotary turns queries and keys of patches, and copies the others") {
  check({2, 201, 196, 64, 24, 24, 768});  // DINOv3 B: the values stay where they are
  check({1, 9, 4, 64, 12, 18});           // while training they come along
  check({2, 257, 256, 88, 4, 4, 176});    // EVA giant
  check({2, 17, 16, 64, 6, 9, 0, 3});     // frequencies of every head
  check({3, 7, 7, 24, 2, 3, 5});
}

TEST_CASE("rotary takes odd sizes") {
  for (const uint64_t width : {2, 4, 6, 10, 12, 62}) {
    check({2, 5, 3, width, 3, 5, 1});
    check({1, 1, 1, width, 4, 4, 0, 2});
  }
}

TEST_CASE("rotary passes a NaN on to its pair alone") {
  const Case c{1, 4, 3, 16, 2, 3};
  for (const RotaryPairs pairs : {RotaryPairs::neighbours, RotaryPairs::halves}) {
    const HostTensor x = test::random_tensor({1, 4, 48}, DType::f32, 1, -2, 2), table = table_of(c);
    test::OpCase op;
    op.label = "NaN";
    const auto refer = [=](std::span<const test::Values> in) {
      return test::Results{reference::rotary(in[0], x.shape, in[1], table.shape, turns_of(c, pairs))};
    };
    const std::vector<test::Values> values{x.values, table.values};
    op.expected = refer(values);
    op.inputs = {{x}, {table, Role::constant}};
    op.build = [=](Graph& graph, std::span<const ValueId> in) {
      return std::vector{
          rotary(graph, "y", in[0], in[1], {.width = 16, .turned = 2, .heads = 3, .pairs = pairs})};
    };
    test::check_nan(op_rotary, op, refer);
  }
}

TEST_CASE("the derivative of rotary turns back") {
  for (const uint64_t margin : {0, 16}) {
    const Case c{2, 5, 3, 16, 4, 6, margin};
    for (const RotaryPairs pairs : {RotaryPairs::neighbours, RotaryPairs::halves}) {
      const Shape shape{2, 5, 96 + margin};
      const HostTensor table = table_of(c);
      test::GradientCase gradients;
      gradients.label = "rotary of " + shape.to_string();
      gradients.inputs = {{test::random_tensor(shape, DType::f32, 1)}, {table, Role::constant}};
      gradients.build = [=](Graph& graph, std::span<const ValueId> in) {
        return std::vector{
            rotary(graph, "y", in[0], in[1], {.width = 16, .turned = 4, .heads = 6, .pairs = pairs})};
      };
      gradients.forward = [=](std::span<const test::Values> in) {
        return test::Results{reference::rotary(in[0], shape, table.values, table.shape, turns_of(c, pairs))};
      };
      gradients.backward = [=](std::span<const test::Values>, std::span<const test::Values> dy) {
        const test::Values turned =
            reference::rotary(dy[0], {2, 5, 96}, table.values, table.shape, turns_of(c, pairs, true));
        return test::Results{reference::pad(turned, {2, 5, 96}, 2, 0, 96 + margin), {}};
      };
      test::check_gradients(gradients);
    }
  }
}

TEST_CASE("rotary refuses what does not fit") {
  Graph graph;
  const ValueId x = graph.input("x", {2, 5, 48}), table = graph.constant("t", {3, 2, 8});
  CHECK_THROWS_AS(rotary(graph, "y", x, table, {.width = 16, .turned = 3, .heads = 4}), Error);
  CHECK_THROWS_AS(rotary(graph, "y", x, table, {.width = 16, .turned = 3, .heads = 2}), Error);
  CHECK_THROWS_AS(rotary(graph, "y", x, table, {.width = 8, .turned = 2, .heads = 2}), Error);
  CHECK_THROWS_AS(rotary(graph, "y", x, table, {.width = 15, .turned = 2, .heads = 2}), Error);
  CHECK_THROWS_AS(
      rotary(graph, "y", x, graph.constant("long", {6, 2, 8}), {.width = 16, .turned = 2, .heads = 2}),
      Error);
}

}  // namespace
}  // namespace vitrine
