// A product's left side that is patches of images (shaders/lib/patches.glsl).
#include "runtime/ops/products/matmul_kernels.h"
#include "runtime/ops/tokens/patch_places.h"

namespace vitrine {

bool reads_patches(const Node& node) { return node.attributes.has("patch_height"); }

std::string with_patches(const LowerContext& context, std::string variant) {
  return (reads_patches(context.node()) ? "patches_" : "") + std::move(variant);
}

void add_patch_constants(const LowerContext& context, Dispatch& dispatch) {
  if (!reads_patches(context.node())) return;
  const Shape& images = context.input(matmul_input::x).shape;
  const Shape& weight = context.input(matmul_input::weight).shape;
  const uint64_t patch_width = weight[3];
  const uint32_t run = patch_width % 4 == 0 && images[3] % 4 == 0 ? 4 : patch_width % 2 == 0 ? 2 : 1;
  add_patch_places(images, {weight[2], patch_width}, dispatch);
  dispatch.add_constants({{"patch_run", run}});
}

}  // namespace vitrine
