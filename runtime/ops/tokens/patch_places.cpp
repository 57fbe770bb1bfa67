#include "runtime/ops/tokens/patch_places.h"

#include "runtime/ops/lowering.h"

namespace vitrine {

void add_patch_places(const Shape& images, PatchSize patch, Dispatch& dispatch) {
  const uint64_t height = images[2], width = images[3], columns = width / patch.width;
  dispatch.add_constants({{"patch_height", to_u32(patch.height)},
                          {"patch_width", to_u32(patch.width)},
                          {"patch_columns", to_u32(columns)},
                          {"patch_count", to_u32(height / patch.height * columns)},
                          {"image_width", to_u32(width)},
                          {"channel_elements", to_u32(height * width)},
                          {"image_elements", to_u32(images[1] * height * width)}});
}

}  // namespace vitrine
