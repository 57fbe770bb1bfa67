#include "runtime/check/cases.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/ops/tokens/patch_weight_gradient.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> patch_weight_gradient_cases() {
  constexpr struct {
    uint64_t images, height, width, patch_height, patch_width, columns;
  } sizes[] = {
      {6, 14, 21, 4, 5, 7},     // pixels that belong to no patch; several images a chunk
      {2, 92, 180, 8, 12, 16},  // several rows of patches a chunk
      {1, 16, 16, 16, 16, 5},   // one patch
      {3, 9, 13, 3, 3, 9},      // lines too short for some kernels
  };
  std::vector<OpCase> cases;
  for (const auto& size : sizes) {
    const PatchSize patch{size.patch_height, size.patch_width};
    const uint64_t patches = (size.height / patch.height) * (size.width / patch.width),
                   depth = 3 * patch.height * patch.width;
    const HostTensor dy = random_tensor({size.images, patches, size.columns}, DType::f32, 1),
                     image = random_tensor({size.images, 3, size.height, size.width}, DType::f32, 2);
    const Values rows = reference::unfold(image.values, image.shape, patch.height, patch.width);
    cases.push_back(one_result(
        "patches of " + std::to_string(patch.height) + " x " + std::to_string(patch.width), {{dy}, {image}},
        reference::weight_gradient(dy.values, rows, 1, size.columns, depth, size.images * patches),
        [patch](Graph& graph, std::span<const ValueId> ids) {
          return patch_weight_gradient(graph, "dw", ids[0], ids[1], patch);
        }));
  }
  return cases;
}

}  // namespace vitrine
