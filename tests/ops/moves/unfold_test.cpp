// unfold and fold, and with them the derivative of patch_embed.
#include "runtime/ops/moves/unfold.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "runtime/check/reference_gradients.h"
#include "runtime/graph/autodiff.h"
#include "runtime/ops/tokens/patch_embed.h"
#include "runtime/ops/tokens/patch_weight_gradient.h"
#include "runtime/util/error.h"
#include "tests/support/gradient_test.h"

namespace vitrine {
namespace {

using test::Results;
using test::Values;

struct Case {
  Shape image;
  uint64_t height, width;
};

// Squares and not, pixels left over, lines that can't be moved by twos.
const std::vector<Case> cases{{{2, 3, 8, 8}, 4, 4},     {{3, 1, 28, 28}, 4, 4}, {{2, 3, 9, 14}, 2, 6},
                              {{1, 5, 7, 11}, 3, 2},    {{2, 2, 10, 13}, 3, 5}, {{1, 3, 32, 48}, 16, 16},
                              {{2, 1, 14, 28}, 14, 14}, {{3, 2, 5, 4}, 1, 1}};

TEST_CASE("unfold gives patches as rows, fold the images back") {
  for (const Case& c : cases) {
    const auto [image, height, width] = c;
    const uint64_t patches = (image[2] / height) * (image[3] / width);
    test::OpCase unfolded;
    unfolded.label = image.to_string() + " in " + std::to_string(height) + " x " + std::to_string(width);
    unfolded.exact = true;
    unfolded.inputs = {{test::random_tensor(image, DType::f32, 1)}};
    unfolded.expected = {reference::unfold(unfolded.inputs[0].tensor.values, image, height, width)};
    unfolded.build = [=](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{unfold(graph, "y", ids[0], {height, width})};
    };
    test::check_op(op_unfold, unfolded);

    test::OpCase folded = unfolded;
    folded.inputs = {{test::random_tensor({image[0], patches, image[1] * height * width}, DType::f32, 1)}};
    folded.expected = {reference::fold(folded.inputs[0].tensor.values, image, height, width)};
    folded.build = [=](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{fold(graph, "y", ids[0], image[2], image[3], {height, width})};
    };
    test::check_op(op_fold, folded);
  }
}

TEST_CASE("the derivatives of unfold and fold") {
  for (const Case& c : {cases[2], cases[3]}) {
    const auto [image, height, width] = c;
    const uint64_t patches = (image[2] / height) * (image[3] / width);
    test::GradientCase unfolded;
    unfolded.label = image.to_string();
    unfolded.inputs = {{test::random_tensor(image, DType::f32, 1)}};
    unfolded.build = [=](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{unfold(graph, "y", ids[0], {height, width})};
    };
    unfolded.forward = [=](std::span<const Values> in) {
      return Results{reference::unfold(in[0], image, height, width)};
    };
    unfolded.backward = [=](std::span<const Values>, std::span<const Values> dy) {
      return Results{reference::fold(dy[0], image, height, width)};
    };
    test::check_gradients(unfolded);

    test::GradientCase folded = unfolded;
    folded.inputs = {{test::random_tensor({image[0], patches, image[1] * height * width}, DType::f32, 1)}};
    folded.build = [=](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{fold(graph, "y", ids[0], image[2], image[3], {height, width})};
    };
    folded.forward = [=](std::span<const Values> in) {
      return Results{reference::fold(in[0], image, height, width)};
    };
    folded.backward = [=](std::span<const Values>, std::span<const Values> dy) {
      return Results{reference::unfold(dy[0], image, height, width)};
    };
    test::check_gradients(folded);
  }
}

void check_patch_embed(const Case& c, uint64_t dims, bool bias, bool constant_image) {
  const auto [image, height, width] = c;
  const Shape weight{dims, image[1], height, width};
  const uint64_t rows = image[0] * (image[2] / height) * (image[3] / width), depth = weight.elements() / dims;
  test::GradientCase g;
  g.label = image.to_string() + " by " + weight.to_string();
  g.inputs = {{test::random_tensor(image, DType::f32, 1), constant_image ? Role::constant : Role::input},
              {test::random_tensor(weight, DType::f32, 2)}};
  if (bias) g.inputs.push_back({test::random_tensor({dims}, DType::f32, 3)});
  g.build = [=](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{patch_embed(graph, "y", ids[0], ids[1], bias ? ids[2] : ValueId{},
                                   {.patch_height = height, .patch_width = width})};
  };
  g.forward = [=](std::span<const Values> in) {
    return Results{reference::patch_embed(in[0], image, in[1], weight, bias ? in[2] : Values{})};
  };
  g.backward = [=](std::span<const Values> in, std::span<const Values> dy) {
    const Values x = reference::unfold(in[0], image, height, width);
    Values dx(rows * depth);
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t d = 0; d < dims; ++d) {
        for (uint64_t k = 0; k < depth; ++k)
          dx[row * depth + k] += dy[0][row * dims + d] * in[1][d * depth + k];
      }
    }
    Results result{constant_image ? Values{} : reference::fold(dx, image, height, width),
                   reference::weight_gradient(dy[0], x, 1, dims, depth, rows)};
    if (bias) result.push_back(reference::sum_rows(dy[0], dims));
    return result;
  };
  test::check_gradients(g);
}

TEST_CASE("the derivative of patch_embed") {
  for (const bool bias : {false, true}) {
    check_patch_embed(cases[1], 8, bias, true);
    check_patch_embed(cases[2], 5, bias, false);
    check_patch_embed(cases[3], 7, bias, false);
    check_patch_embed({{2, 3, 16, 24}, 8, 8}, 24, bias, true);
    check_patch_embed({{2, 3, 16, 24}, 8, 8}, narrow_patch_embedding + 1, bias, true);
    check_patch_embed(cases[2], 40, bias, false);
  }
}

TEST_CASE("patch_embed's image is unfolded only for a wide weight, and once") {
  const auto count = [](const Graph& graph, const OpDef& op) {
    return std::ranges::count_if(graph.nodes(), [&](const Node& node) { return node.op == &op; });
  };
  for (const uint64_t dims : {narrow_patch_embedding, narrow_patch_embedding + 1}) {
    Graph graph;
    const ValueId image = graph.input("image", {2, 3, 8, 8}), weight = graph.input("weight", {dims, 3, 4, 4}),
                  bias = graph.input("bias", {dims});
    const ValueId y = patch_embed(graph, "y", image, weight, bias, {.patch_height = 4, .patch_width = 4});
    const std::vector<GradientSeed> seeds{{y, graph.input("dy", {2, 4, dims})}};
    Graph only_bias = graph;
    add_gradients(only_bias, seeds, std::vector{bias});
    CHECK(count(only_bias, op_unfold) == 0);
    CHECK(count(only_bias, op_patch_weight_gradient) == 0);
    add_gradients(graph, seeds, std::vector{weight, bias});
    const bool narrow = dims <= narrow_patch_embedding;
    CHECK(count(graph, op_unfold) == !narrow);
    CHECK(count(graph, op_patch_weight_gradient) == narrow);
    CHECK(count(graph, op_fold) == 0);
  }
}

TEST_CASE("unfold and fold refuse what does not fit") {
  Graph graph;
  const ValueId image = graph.input("image", {2, 3, 8, 8});
  CHECK_THROWS_AS(unfold(graph, "y", image, {0, 4}), Error);
  CHECK_THROWS_AS(unfold(graph, "y", image, {4, 9}), Error);
  CHECK_THROWS_AS(unfold(graph, "y", graph.input("x", {8, 8}), {4, 4}), Error);
  const ValueId rows = graph.input("rows", {2, 4, 48});
  CHECK_NOTHROW(fold(graph, "y", rows, 9, 11, {4, 4}));
  CHECK_THROWS_AS(fold(graph, "y", rows, 9, 12, {4, 4}), Error);
  CHECK_THROWS_AS(fold(graph, "y", rows, 10, 10, {5, 5}), Error);
}

}  // namespace
}  // namespace vitrine
