// What textures and the display's images have in common: color, without mipmaps or layers.
#pragma once

#include <vulkan/vulkan_core.h>

#include "runtime/vk/device.h"
#include "runtime/vk/handle.h"

namespace vitrine::desktop {

// One side of a barrier: what the use before wrote is there for the one after, in the layout that it wants.
struct ImageUse {
  VkImageLayout layout = VK_IMAGE_LAYOUT_UNDEFINED;
  VkPipelineStageFlags2 stage = VK_PIPELINE_STAGE_2_NONE;
  VkAccessFlags2 access = VK_ACCESS_2_NONE;  // of the use before: its writes
};

void record_image_barrier(Device& device, VkCommandBuffer commands, VkImage image, const ImageUse& before,
                          const ImageUse& after);

DeviceHandle<VkImageView> make_color_view(Device& device, VkImage image, VkFormat format);

}  // namespace vitrine::desktop
