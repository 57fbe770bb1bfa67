// The derivatives of the operators that move data: slice, concat, repeat, pool.
#include <catch2/catch_test_macros.hpp>

#include "runtime/check/reference_gradients.h"
#include "runtime/graph/autodiff.h"
#include "runtime/ops/moves/concat.h"
#include "runtime/ops/moves/repeat.h"
#include "runtime/ops/moves/slice.h"
#include "runtime/ops/tokens/pool.h"
#include "runtime/util/error.h"
#include "tests/support/gradient_test.h"

namespace vitrine {
namespace {

using test::Results;
using test::Values;

void check_slice(const Shape& shape, int axis, uint64_t begin, uint64_t end) {
  test::GradientCase c;
  c.label = shape.to_string() + " from " + std::to_string(begin) + " to " + std::to_string(end);
  c.inputs = {{test::random_tensor(shape, DType::f32, 1)}};
  c.build = [=](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{slice(graph, "y", ids[0], axis, begin, end)};
  };
  c.forward = [=](std::span<const Values> in) {
    return Results{reference::slice(in[0], shape, axis, begin, end)};
  };
  c.backward = [=](std::span<const Values>, std::span<const Values> dy) {
    std::vector<uint64_t> dims(shape.dims().begin(), shape.dims().end());
    dims[static_cast<size_t>(axis)] = end - begin;
    return Results{reference::pad(dy[0], Shape(dims), axis, begin, shape[axis])};
  };
  test::check_gradients(c);
}

TEST_CASE("the derivative of slice") {
  check_slice({3, 5, 7}, 0, 1, 2);
  check_slice({3, 5, 7}, 1, 1, 5);
  check_slice({3, 5, 7}, 2, 0, 3);
  check_slice({3, 5, 7}, 1, 0, 5);
  check_slice({2, 197, 12}, 1, 5, 197);
}

TEST_CASE("the gradients of two slices of one value are added") {
  const Shape shape{3, 5, 7};
  test::GradientCase c;
  c.label = "two slices";
  c.inputs = {{test::random_tensor(shape, DType::f32, 1)}};
  c.build = [](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{slice(graph, "a", ids[0], 1, 0, 3), slice(graph, "b", ids[0], 1, 2, 5)};
  };
  c.forward = [=](std::span<const Values> in) {
    return Results{reference::slice(in[0], shape, 1, 0, 3), reference::slice(in[0], shape, 1, 2, 5)};
  };
  c.backward = [=](std::span<const Values>, std::span<const Values> dy) {
    return Results{
        reference::add(reference::pad(dy[0], {3, 3, 7}, 1, 0, 5), reference::pad(dy[1], {3, 3, 7}, 1, 2, 5))};
  };
  test::check_gradients(c);
}

void check_concat(const std::vector<Shape>& shapes, int axis, bool constant_first = false) {
  test::GradientCase c;
  c.label = "along " + std::to_string(axis);
  Shape whole = shapes[0];
  std::vector<uint64_t> starts, dims(whole.dims().begin(), whole.dims().end());
  dims[static_cast<size_t>(axis)] = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    c.inputs.push_back({test::random_tensor(shapes[i], DType::f32, 1 + i),
                        constant_first && i == 0 ? Role::constant : Role::input});
    starts.push_back(dims[static_cast<size_t>(axis)]);
    dims[static_cast<size_t>(axis)] += shapes[i][axis];
  }
  whole = Shape(dims);
  c.build = [=](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{concat(graph, "y", {ids.begin(), ids.end()}, axis)};
  };
  c.forward = [=](std::span<const Values> in) {
    return Results{reference::concat({in.begin(), in.end()}, shapes, axis)};
  };
  c.backward = [=](std::span<const Values>, std::span<const Values> dy) {
    Results parts;
    for (size_t i = 0; i < shapes.size(); ++i) {
      parts.push_back(constant_first && i == 0
                          ? Values{}
                          : reference::slice(dy[0], whole, axis, starts[i], starts[i] + shapes[i][axis]));
    }
    return parts;
  };
  test::check_gradients(c);
}

TEST_CASE("the derivative of concat") {
  check_concat({{3, 1, 7}, {3, 4, 7}, {3, 2, 7}}, 1);
  check_concat({{3, 5, 7}, {3, 5, 2}}, 2);
  check_concat({{2, 5}, {1, 5}, {4, 5}}, 0);
  check_concat({{3, 1, 7}, {3, 4, 7}}, 1, true);
}

void check_repeat(const Shape& shape, uint64_t count, bool tokens) {
  test::GradientCase c;
  c.label = std::to_string(count) + " times " + shape.to_string();
  c.inputs = {{test::random_tensor(shape, DType::f32, 1)}};
  c.build = [=](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{tokens ? repeat_tokens(graph, "y", ids[0], count) : repeat(graph, "y", ids[0], count)};
  };
  c.forward = [=](std::span<const Values> in) {
    Values y;
    for (uint64_t i = 0; i < count; ++i) y.insert(y.end(), in[0].begin(), in[0].end());
    return Results{y};
  };
  c.backward = [=](std::span<const Values>, std::span<const Values> dy) {
    Values dx(shape.elements());
    for (size_t i = 0; i < dy[0].size(); ++i) dx[i % dx.size()] += dy[0][i];
    return Results{dx};
  };
  test::check_gradients(c);
}

TEST_CASE("the derivative of repeat") {
  check_repeat({7}, 5, false);
  check_repeat({3, 7}, 131, false);
  check_repeat({2, 3, 5}, 3, false);
  check_repeat({8}, 128, true);
  check_repeat({3, 7}, 5, true);
}

void check_pool(const Shape& tokens, uint64_t first, uint64_t count) {
  test::GradientCase c;
  c.label = std::to_string(count) + " tokens from " + std::to_string(first) + " on, of " + tokens.to_string();
  c.inputs = {{test::random_tensor(tokens, DType::f32, 1)}};
  c.build = [=](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{pool_mean(graph, "y", ids[0], first, count)};
  };
  c.forward = [=](std::span<const Values> in) {
    return Results{reference::pool(in[0], tokens, first, count)};
  };
  c.backward = [=](std::span<const Values>, std::span<const Values> dy) {
    return Results{reference::pool_gradient(dy[0], tokens[2], tokens[1], first, count)};
  };
  test::check_gradients(c);
}

TEST_CASE("the derivative of pool") {
  check_pool({3, 5, 7}, 0, 1);
  check_pool({3, 5, 7}, 4, 1);
  check_pool({3, 5, 7}, 1, 3);
  check_pool({3, 5, 7}, 0, 5);
  check_pool({128, 50, 8}, 0, 1);
  check_pool({2, 197, 48}, 1, 196);
  check_pool({5, 1, 7}, 0, 1);
}

TEST_CASE("pool_gradient refuses what does not fit") {
  Graph graph;
  const ValueId dy = graph.input("dy", {3, 7});
  CHECK_THROWS_AS(pool_gradient(graph, "dx", dy, 5, 3, 3), Error);
  CHECK_THROWS_AS(pool_gradient(graph, "dx", dy, 5, 0, 0), Error);
  CHECK_THROWS_AS(pool_gradient(graph, "dx", graph.input("three", {3, 5, 7}), 5, 0, 1), Error);
}

}  // namespace
}  // namespace vitrine
