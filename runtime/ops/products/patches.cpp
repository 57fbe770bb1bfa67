// A product's left side that is patches of images (shaders/lib/patches.glsl).
#include "runtime/ops/products/matmul_kernels.h"

namespace vitrine {

bool reads_patches(const Node& node) { return node.attributes.has("patch_height"); }

std::string with_patches(const LowerContext& context, std::string variant) {
  return (reads_patches(context.node()) ? "patches_" : "") + std::move(variant);
}

void add_patch_constants(const LowerContext& context, Dispatch& dispatch) {
  if (!reads_patches(context.node())) return;
  const Shape& images = context.input(matmul_input::x).shape;
  const Shape& weight = context.input(matmul_input::weight).shape;
  const uint64_t width = images[3], patch_width = weight[3];
  const uint32_t run = patch_width % 4 == 0 && width % 4 == 0 ? 4 : patch_width % 2 == 0 ? 2 : 1;
  dispatch.add_constants({{"patch_height", to_u32(weight[2])},
                          {"patch_width", to_u32(patch_width)},
                          {"patch_columns", to_u32(width / patch_width)},
                          {"patch_count", to_u32(context.output(0).shape[1])},
                          {"image_width", to_u32(width)},
                          {"channel_elements", to_u32(images[2] * width)},
                          {"image_elements", to_u32(images[1] * images[2] * width)},
                          {"patch_run", run}});
}

}  // namespace vitrine
