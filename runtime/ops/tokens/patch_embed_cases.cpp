#include <algorithm>

#include "runtime/check/cases.h"
#include "runtime/ops/tokens/patch_embed.h"

namespace vitrine {

using namespace cases;

std::vector<OpCase> patch_embed_cases() {
  std::vector<OpCase> cases;
  // Rows and columns are left over. Of a depth that four doesn't divide, of pairs, of fours and of whole
  // steps; and four patches beside each other, of lines that make up whole chunks.
  constexpr struct {
    uint64_t width, height, patch_height, patch_width, dims;
  } sizes[] = {{17, 22, 3, 5, 36},  {17, 22, 4, 5, 37},    {34, 31, 14, 14, 36},
               {36, 22, 4, 12, 37}, {36, 34, 16, 16, 264}, {35, 18, 8, 8, 20}};
  for (const auto& [width, height, patch_height, patch_width, dims] : sizes) {
    for (const DType dtype : dtypes) {
      const Shape image{2, 3, height, width}, weight{dims, 3, patch_height, patch_width};
      OpCase& c = cases.emplace_back();
      c.label = "patches of " + std::to_string(patch_height) + "x" + std::to_string(patch_width);
      c.for_its_path = patch_height != 4 || patch_width != 5;
      // Matrix units round pixels to f16: of f16 values nothing is lost.
      HostTensor pixels = random_tensor(image, dtype, 1);
      pixels.dtype = DType::f32;
      c.inputs = {{std::move(pixels)},
                  {random_tensor(weight, dtype, 2), Role::constant},
                  {random_tensor({dims}, DType::f32, 3), Role::constant}};
      c.expected = {reference::patch_embed(c.inputs[0].tensor.values, image, c.inputs[1].tensor.values,
                                           weight, c.inputs[2].tensor.values)};
      c.build = [patch_height, patch_width](Graph& graph, std::span<const ValueId> ids) {
        return std::vector{patch_embed(graph, "y", ids[0], ids[1], ids[2],
                                       {.patch_height = patch_height, .patch_width = patch_width})};
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
  Sample sample = rows_sample(node, patches, weight[0],
                              reference::patch_embed(pixels, {patches.size(), channels, height, width},
                                                     node.values(1), weight, optional_values(node, 2)));
  // Matrix units round pixels to what the weight is.
  sample.tolerance = std::max(sample.tolerance, reference::usual_tolerance(node.input(1).dtype));
  return {std::move(sample)};
}

}  // namespace vitrine
