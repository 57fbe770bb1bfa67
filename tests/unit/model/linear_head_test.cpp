// What linear heads are put on, and how a grid becomes a picture.
#include "model/look/linear_head.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <vector>

#include "runtime/util/error.h"

using namespace vitrine;

namespace {

using Layers = std::vector<uint64_t>;
using enum LinearHead::Family;
using enum LinearHead::Task;

LinearHead head_of(LinearHead::Family family, LinearHead::Task task, uint64_t inputs) {
  LinearHead head;
  head.family = family;
  head.task = task;
  head.inputs = inputs;
  return head;
}

ViTConfig trunk(uint64_t depth) {
  ViTConfig config;
  config.dim = 384;
  config.depth = depth;
  return config;
}

}  // namespace

TEST_CASE("heads of four blocks see those that their makers chose") {
  for (const auto& [blocks, layers] :
       {std::pair{12, Layers{2, 5, 8, 11}}, std::pair{24, Layers{4, 11, 17, 23}},
        std::pair{32, Layers{7, 15, 23, 31}}, std::pair{40, Layers{9, 19, 29, 39}}}) {
    const ViTConfig config = trunk(static_cast<uint64_t>(blocks));
    const HeadInput two = head_input(head_of(dinov2, depth, 8 * 384), config, {});
    CHECK(two.layers == layers);
    CHECK(two.class_token);
    CHECK_FALSE(two.norm);
    const HeadInput three = head_input(head_of(dinov3, depth, 4 * 384), config, {.norm = true});
    CHECK(three.layers == layers);
    CHECK_FALSE(three.class_token);
    CHECK(three.norm);
  }
  // Which four a head of classes saw was tried in several ways.
  CHECK_THROWS_AS(head_input(head_of(dinov2, classes, 4 * 384), trunk(12), {}), Error);
  const HeadInput last = head_input(head_of(dinov2, classes, 4 * 384), trunk(12), {.layers = {8, 9, 10, 11}});
  CHECK(last.layers == Layers{8, 9, 10, 11});
  CHECK(last.norm);
  CHECK_FALSE(last.class_token);
  CHECK(head_input(head_of(dinov3, classes, 384), trunk(12), {}).layers == Layers{11});
}

TEST_CASE("whether a head of distances saw the class token is told by its width") {
  const auto found = [](uint64_t inputs, Layers layers) {
    return head_input(head_of(dinov3, depth, inputs), trunk(12), {.layers = std::move(layers), .norm = false})
        .class_token;
  };
  CHECK_FALSE(found(384, {}));
  CHECK(found(2 * 384, {}));
  CHECK_FALSE(found(2 * 384, {5, 11}));
  CHECK(found(4 * 384, {5, 11}));
  CHECK(found(8 * 384, {}));
  CHECK_THROWS_AS(found(3 * 384, {}), Error);
  CHECK_THROWS_AS(found(385, {}), Error);
  ViTConfig config = trunk(12);
  config.class_token = false;
  CHECK_THROWS_AS(head_input(head_of(dinov2, depth, 2 * 384), config, {}), Error);
  // Behind a neck patches are as wide as that.
  config.neck = 256;
  CHECK(head_input(head_of(dinov2, classes, 256), config, {}).layers == Layers{11});
  CHECK_THROWS_AS(head_input(head_of(dinov2, classes, 384), config, {}), Error);
}

TEST_CASE("a grid is resized as PyTorch does without aligned corners") {
  // torch.nn.functional.interpolate(torch.tensor([[[[0., 1., 4.], [2., 8., 6.]]]]), (3, 5), mode="bilinear")
  const std::vector<float> expected{0.0f, 0.4f, 1.0f, 2.8f, 4.0f, 1.0f, 2.4f, 4.5f,
                                    4.8f, 5.0f, 2.0f, 4.4f, 8.0f, 6.8f, 6.0f};
  const std::vector<float> found = resized(std::vector<float>{0, 1, 4, 2, 8, 6}, {2, 3}, {3, 5});
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    CHECK_THAT(found[i], Catch::Matchers::WithinAbs(static_cast<double>(expected[i]), 1e-6));
}
