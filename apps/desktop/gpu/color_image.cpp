#include "apps/desktop/gpu/color_image.h"

#include <volk.h>

#include "runtime/vk/result.h"

namespace vitrine::desktop {

void record_image_barrier(Device& device, VkCommandBuffer commands, VkImage image, const ImageUse& before,
                          const ImageUse& after) {
  VkImageMemoryBarrier2 barrier{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2};
  barrier.srcStageMask = before.stage;
  barrier.srcAccessMask = before.access;
  barrier.dstStageMask = after.stage;
  barrier.dstAccessMask = after.access;
  barrier.oldLayout = before.layout;
  barrier.newLayout = after.layout;
  barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.image = image;
  barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  VkDependencyInfo info{VK_STRUCTURE_TYPE_DEPENDENCY_INFO};
  info.imageMemoryBarrierCount = 1;
  info.pImageMemoryBarriers = &barrier;
  device.vk().vkCmdPipelineBarrier2(commands, &info);
}

DeviceHandle<VkImageView> make_color_view(Device& device, VkImage image, VkFormat format) {
  VkImageViewCreateInfo info{VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
  info.image = image;
  info.viewType = VK_IMAGE_VIEW_TYPE_2D;
  info.format = format;
  info.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  VkImageView made = VK_NULL_HANDLE;
  check(device.vk().vkCreateImageView(device.handle(), &info, nullptr, &made), "vkCreateImageView");
  return {device.handle(), made, device.vk().vkDestroyImageView};
}

}  // namespace vitrine::desktop
