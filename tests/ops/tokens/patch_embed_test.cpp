#include "runtime/ops/tokens/patch_embed.h"

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
  Shape image, weight;
  DType weights = DType::f32, out = DType::f32;
  bool bias = true;
};

test::OpCase op_case(const Case& c, HostTensor image) {
  const HostTensor weight = test::random_tensor(c.weight, c.weights, 2);
  const HostTensor bias = test::random_tensor({c.weight[0]}, DType::f32, 3);
  test::OpCase result;
  result.label = c.image.to_string() + " by " + c.weight.to_string() + " " + std::string(name_of(c.weights)) +
                 " to " + std::string(name_of(c.out));
  result.expected = {reference::patch_embed(image.values, c.image, weight.values, c.weight,
                                            c.bias ? bias.values : reference::Values{})};
  result.inputs = {{std::move(image)}, {weight, Role::constant}};
  if (c.bias) result.inputs.push_back({bias, Role::constant});
  result.build = [c](Graph& graph, std::span<const ValueId> in) {
    return std::vector{patch_embed(graph, "patches", in[0], in[1], c.bias ? in[2] : ValueId{},
                                   {.patch_height = c.weight[2], .patch_width = c.weight[3], .out = c.out})};
  };
  return result;
}

// Pixels that are rounded to what the weight is, as matrix units do it, lose nothing.
HostTensor image_for(const Case& c) {
  HostTensor image = test::random_tensor(c.image, c.weights, 1);
  image.dtype = DType::f32;
  return image;
}

void check(const Case& c) { test::check_op(op_patch_embed, op_case(c, image_for(c))); }

TEST_CASE("patch_embed matches the float64 reference for the models' sizes") {
  check({{1, 3, 224, 224}, {192, 3, 16, 16}});
  check({{2, 3, 32, 32}, {384, 3, 4, 4}});
  check({{3, 1, 28, 28}, {8, 1, 4, 4}});
  check({{2, 3, 98, 70}, {65, 3, 14, 14}});
}

TEST_CASE("patch_embed matches the float64 reference for odd and one-sided sizes") {
  check({{1, 1, 1, 2}, {3, 1, 1, 1}});
  check({{2, 5, 21, 33}, {67, 5, 7, 3}});
  check({{3, 2, 15, 10}, {1, 2, 5, 2}});
  check({{1, 3, 13, 130}, {131, 3, 13, 2}});
}

TEST_CASE("patch_embed ignores pixels beyond the last whole patch") {
  check({{2, 3, 37, 50}, {24, 3, 8, 16}});
}

TEST_CASE("patch_embed works without a bias") {
  check({.image = {2, 3, 24, 16}, .weight = {40, 3, 8, 8}, .bias = false});
}

TEST_CASE("patch_embed reads f16 weights and writes f16") {
  for (const DType weights : {DType::f32, DType::f16}) {
    for (const DType out : {DType::f32, DType::f16}) {
      check({{2, 3, 48, 32}, {71, 3, 16, 16}, weights, out});
      check({{1, 1, 7, 9}, {5, 1, 3, 3}, weights, out});
    }
  }
}

TEST_CASE("patch_embed is right in every tile, for patches that lie by fours, by pairs and one by one") {
  // Tiles of halves once: a software driver compiles matrices slowly.
  for (const Case& c :
       {Case{{1, 3, 68, 96}, {136, 3, 16, 16}}, Case{{2, 3, 70, 42}, {71, 3, 14, 14}},
        Case{{2, 1, 35, 33}, {72, 1, 7, 5}}, Case{{2, 3, 70, 42}, {71, 3, 14, 14}, DType::f16, DType::f16}}) {
    test::check_configurations(op_patch_embed, op_case(c, image_for(c)));
  }
}

TEST_CASE("patch_embed rounds pixels to the nearest f16 where it doesn't take them as they are") {
  // Each dimension picks one pixel. Rounding to nearest makes errors of 2^-11 at most between 1 and 2, of
  // which the root mean square is the 1/sqrt(3), beside pixels of 1.5 on average; cutting off twice of that.
  const Case c{{1, 1, 32, 48}, {16, 1, 4, 4}, DType::f16};
  test::OpCase picked = op_case(c, test::random_tensor(c.image, DType::f32, 1, 1, 2));
  HostTensor& weight = picked.inputs[1].tensor;
  for (size_t i = 0; i < weight.values.size(); ++i) weight.values[i] = i % 17 == 0;
  picked.expected = {reference::patch_embed(picked.inputs[0].tensor.values, c.image, weight.values, c.weight,
                                            picked.inputs[2].tensor.values)};
  picked.tolerance = 2.5e-4;
  test::check_op(op_patch_embed, picked);
}

TEST_CASE("patch_embed keeps NaN and infinity within their patch") {
  const Case c{{2, 3, 16, 24}, {19, 3, 8, 8}};
  HostTensor image = test::random_tensor(c.image, DType::f32, 1);
  image.values[3 * 16 * 24 + 9] = std::numeric_limits<double>::quiet_NaN();  // second image, second patch
  image.values[5 * 24] = std::numeric_limits<double>::infinity();            // first image, first patch
  test::OpCase nonfinite = op_case(c, std::move(image));
  nonfinite.allow_nonfinite = true;
  test::check_op(op_patch_embed, nonfinite);
}

TEST_CASE("patch_embed names what does not fit") {
  Graph graph;
  const ValueId image = graph.input("image", {1, 3, 8, 8});
  const ValueId weight = graph.constant("weight", {5, 3, 4, 4});
  CHECK_THROWS_MATCHES(
      patch_embed(graph, "patches", image, weight, {}, {.patch_height = 4, .patch_width = 2}), Error,
      Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring("[5, 3, 4, 4]")));
  CHECK_THROWS_MATCHES(
      patch_embed(graph, "patches", image, weight, {}, {.patch_height = 9, .patch_width = 4}), Error,
      Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring("9 x 4")));
}

}  // namespace
}  // namespace vitrine
