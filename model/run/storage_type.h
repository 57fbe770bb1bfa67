// In which type a model's weights and products are stored on a device.
#pragma once

#include <string_view>

#include "runtime/graph/tensor.h"
#include "runtime/vk/capabilities.h"

namespace vitrine {

// "f32", "f16" or "auto" for this device; auto is f32. Throws Error(usage) where the device can't store
// 16 bits.
DType storage_type(std::string_view name, const Capabilities& device);

}  // namespace vitrine
