#include "runtime/check/cases.h"
#include "runtime/ops/tokens/patch_embed.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> patch_embed_cases() {
  std::vector<OpCase> cases;
  // Patches of whole steps, too.
  for (const uint64_t patch_width : {uint64_t{5}, uint64_t{4}}) {
    for (const DType dtype : dtypes) {
      const Shape image{2, 3, 22, 17}, weight{37, 3, 4, patch_width};  // rows and columns are left over
      OpCase& c = cases.emplace_back();
      c.label = "patches of 4x" + std::to_string(patch_width);
      c.for_its_path = patch_width == 4;
      c.inputs = {{random_tensor(image, DType::f32, 1)},
                  {random_tensor(weight, dtype, 2), Role::constant},
                  {random_tensor({37}, DType::f32, 3), Role::constant}};
      c.expected = {reference::patch_embed(c.inputs[0].tensor.values, image, c.inputs[1].tensor.values,
                                           weight, c.inputs[2].tensor.values)};
      c.build = [patch_width](Graph& graph, std::span<const ValueId> ids) {
        return std::vector{
            patch_embed(graph, "y", ids[0], ids[1], ids[2], {.patch_height = 4, .patch_width = patch_width})};
      };
    }
  }
  return cases;
}

std::vector<Sample> patch_embed_sample(const LoneNode& node) {
  const Shape &image = node.input(0).shape, &weight = node.input(1).shape;
  const uint64_t channels = weight[1], height = weight[2], width = weight[3];
  const uint64_t rows = image[2] / height, columns = image[3] / width;
  // Each sampled patch as an image of its own.
  const std::vector<uint64_t> patches = some_rows(image[0] * rows * columns);
  Values pixels;
  for (const uint64_t patch : patches) {
    const uint64_t b = patch / (rows * columns), y = patch / columns % rows, x = patch % columns;
    for (uint64_t c = 0; c < channels; ++c) {
      for (uint64_t dy = 0; dy < height; ++dy) {
        for (uint64_t dx = 0; dx < width; ++dx) {
          const uint64_t row = (b * channels + c) * image[2] + y * height + dy;
          pixels.push_back(node.value(0, row * image[3] + x * width + dx));
        }
      }
    }
  }
  return {rows_sample(node, patches, weight[0],
                      reference::patch_embed(pixels, {patches.size(), channels, height, width},
                                             node.values(1), weight, optional_values(node, 2)))};
}

}  // namespace vitrine
