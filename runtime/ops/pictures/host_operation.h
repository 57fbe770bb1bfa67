// Picture operations on the host, for devices that are the host themselves: the bytes that the shaders make,
// which are Pillow's, without what a device's loads and dispatches cost there.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ops/pictures/picture_operation.h"

namespace vitrine {

// Makes of the pixels the picture after the operation; `memory` is for what they were. Throws Error(failed)
// as write_operation() does.
void apply_on_host(const PictureOperation& operation, std::vector<uint32_t>& pixels, uint32_t width,
                   uint32_t height, std::vector<uint32_t>& memory);

}  // namespace vitrine
