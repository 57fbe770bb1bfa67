// Frames to the window's surface. Nothing here waits for the device: when it is busy, there is no frame yet.
#pragma once

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "apps/desktop/engine/slow_calls.h"
#include "apps/desktop/gpu/texture.h"
#include "apps/desktop/gpu/ui_renderer.h"
#include "images/image.h"
#include "runtime/graph/bound_dispatch.h"
#include "runtime/vk/device.h"
#include "runtime/vk/handle.h"

struct ImDrawData;

namespace vitrine::desktop {

class Frames {
 public:
  Frames(Device& device, VkSurfaceKHR surface, VkExtent2D size);
  // Waits until the device is done.
  ~Frames();
  Frames(const Frames&) = delete;
  Frames& operator=(const Frames&) = delete;

  TextureStore& textures() { return *textures_; }

  // Error(failed) of what follows says that nothing can be drawn any more, and why: nothing can be said in
  // the window then either.

  // ImGui's font atlas as it is now.
  void upload_fonts();
  // Takes back what the device and the display have finished; to be called often.
  void collect();
  // Whether a frame can be drawn now into a window of `size`.
  bool ready(VkExtent2D size);
  // After ready() said so.
  void draw(const ImDrawData& data);
  // Nothing is in flight.
  bool idle() const;

  // The next frame's pixels, as soon as the device has drawn it. Error(failed) where the display keeps them.
  void capture(std::function<void(Image)> take);

 private:
  struct Slot {
    std::unique_ptr<CommandPool> commands;
    DeviceHandle<VkFence> fence;
    DeviceHandle<VkSemaphore> acquired;
    uint64_t frame = 0;  // 0: nothing in flight
    uint32_t image = 0;
    VkExtent2D extent{};
    std::unique_ptr<Buffer> pixels;
    std::vector<std::function<void(Image)>> captures;
  };
  struct Target {
    VkImage image = VK_NULL_HANDLE;
    DeviceHandle<VkImageView> view;
    DeviceHandle<VkSemaphore> drawn;
  };

  struct Swapchain {
    DeviceHandle<VkSwapchainKHR> handle;
    std::vector<Target> targets;
    VkExtent2D extent{};
    bool readable = false;   // its images can be copied from
    bool presented = false;  // one of them, at least
  };
  // What a window of another size has left behind. The queue may not have come to the last present yet; it
  // has when a later frame is drawn.
  struct Retired {
    Swapchain swapchain;
    uint64_t until = 0;
  };

  void take_finished();
  bool take_image(VkExtent2D size);
  void submit_frame(const ImDrawData& data);
  // Without a handle where the window has no area.
  Swapchain make_swapchain(VkExtent2D size, VkSwapchainKHR old) const;
  void take_swapchain(Swapchain swapchain);
  void present(const Slot& slot);
  void finish_captures(Slot& slot);
  void record(Slot& slot, const ImDrawData& data);

  Device& device_;
  VkSurfaceKHR surface_;
  VkPresentModeKHR mode_;
  VkSurfaceFormatKHR format_{};
  SlowCalls display_calls_, texture_calls_;  // presents don't wait behind textures
  Swapchain swapchain_;
  bool outdated_ = false;  // it can't be drawn to any more
  // While one of them is under way, the swapchain is the driver's.
  std::future<Swapchain> making_;
  std::future<VkResult> presenting_;
  std::vector<Retired> retired_;
  std::unique_ptr<TextureStore> textures_;
  std::unique_ptr<UiRenderer> renderer_;
  std::array<Slot, UiRenderer::frames_in_flight> slots_;
  uint64_t next_frame_ = 1;
  std::optional<uint32_t> acquired_;
  std::vector<std::function<void(Image)>> captures_;
};

}  // namespace vitrine::desktop
