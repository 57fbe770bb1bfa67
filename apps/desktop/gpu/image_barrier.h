// Between two uses of an image: what the first wrote is there for the second, in the layout that it wants.
#pragma once

#include <vulkan/vulkan_core.h>

#include "runtime/vk/device.h"

namespace vitrine::desktop {

// One side of a barrier.
struct ImageUse {
  VkImageLayout layout = VK_IMAGE_LAYOUT_UNDEFINED;
  VkPipelineStageFlags2 stage = VK_PIPELINE_STAGE_2_NONE;
  VkAccessFlags2 access = VK_ACCESS_2_NONE;  // of the use before: its writes
};

// Of a color image without mipmaps or layers.
void record_image_barrier(Device& device, VkCommandBuffer commands, VkImage image, const ImageUse& before,
                          const ImageUse& after);

}  // namespace vitrine::desktop
