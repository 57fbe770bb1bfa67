// Draws what ImGui made of a frame. ImGui's own Vulkan backend calls functions that a linked libvulkan would
// have to bring; here every call goes through the device's table, as everywhere in Vitrine, and the program
// starts on machines without Vulkan to say what is missing.
#pragma once

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <memory>

#include "apps/desktop/gpu/texture.h"
#include "runtime/vk/device.h"
#include "runtime/vk/handle.h"
#include "runtime/vk/memory.h"

struct ImDrawData;

namespace vitrine::desktop {

class UiRenderer {
 public:
  static constexpr uint32_t frames_in_flight = 2;

  UiRenderer(Device& device, TextureStore& textures, VkFormat format);

  // ImGui's font atlas as it is now.
  void upload_fonts();
  // Whether letters can be drawn by now. Error(failed) where they never can.
  bool has_fonts() const;
  // Inside a dynamic rendering pass to an image of `extent`; `slot` is below frames_in_flight, and the device
  // is done with the frame before in that slot. Textures that aren't there yet are left out.
  void draw(VkCommandBuffer commands, const ImDrawData& data, VkExtent2D extent, uint32_t slot);

 private:
  void make_pipeline(VkFormat format);

  Device& device_;
  TextureStore& textures_;
  DeviceHandle<VkPipelineLayout> layout_;
  DeviceHandle<VkPipeline> pipeline_;
  TexturePointer fonts_;
  struct Geometry {
    std::unique_ptr<Buffer> vertices, indices;
  };
  std::array<Geometry, frames_in_flight> geometry_;
};

}  // namespace vitrine::desktop
