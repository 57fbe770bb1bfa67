#include "runtime/ops/tokens/patch_weight_gradient.h"

#include <catch2/catch_test_macros.hpp>

#include "runtime/check/reference_gradients.h"
#include "tests/support/gradient_test.h"

namespace vitrine {
namespace {

struct Size {
  uint64_t images, channels, height, width, patch_height, patch_width, columns;
};

test::OpCase op_case(const Size& s) {
  const PatchSize patch{s.patch_height, s.patch_width};
  const uint64_t patches = (s.height / patch.height) * (s.width / patch.width),
                 depth = s.channels * patch.height * patch.width;
  test::OpCase c;
  c.label = std::to_string(s.images) + " images of " + std::to_string(s.height) + " x " +
            std::to_string(s.width) + ", patches of " + std::to_string(patch.height) + " x " +
            std::to_string(patch.width) + ", " + std::to_string(s.columns) + " columns";
  c.inputs = {{test::random_tensor({s.images, patches, s.columns}, DType::f32, 1)},
              {test::random_tensor({s.images, s.channels, s.height, s.width}, DType::f32, 2)}};
  const auto &dy = c.inputs[0].tensor, &image = c.inputs[1].tensor;
  const test::Values rows = reference::unfold(image.values, image.shape, patch.height, patch.width);
  c.expected = {reference::weight_gradient(dy.values, rows, 1, s.columns, depth, s.images * patches)};
  c.build = [=](Graph& graph, std::span<const ValueId> ids) {
    const ValueId found = patch_weight_gradient(graph, "dw", ids[0], ids[1], patch);
    CHECK(graph.value(found).shape == Shape{s.columns, depth});
    return std::vector{found};
  };
  return c;
}

}  // namespace

TEST_CASE("patch_weight_gradient matches the float64 reference") {
  for (const Size& size :
       {Size{64, 3, 64, 64, 32, 32, 16},  // as the model of docs' measurements has them, smaller
        Size{2, 3, 224, 224, 32, 32, 16}, Size{8, 1, 28, 28, 7, 7, 32}, Size{5, 1, 28, 28, 4, 4, 24},
        Size{3, 3, 224, 224, 14, 14, 8}, Size{2, 3, 96, 96, 16, 16, 32}, Size{7, 3, 33, 47, 8, 8, 11},
        Size{1, 2, 40, 400, 8, 8, 13}, Size{2, 3, 13, 11, 13, 11, 1}, Size{3, 1, 6, 6, 2, 2, 4}}) {
    test::check_op(op_patch_weight_gradient, op_case(size));
  }
}

}  // namespace vitrine
