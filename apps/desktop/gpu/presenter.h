// Hands images to the display from a thread of its own, for devices where that waits until the queue has come
// so far: on devices that are the CPU, presenting is a copy that the host makes.
#pragma once

#include <vulkan/vulkan_core.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/vk/device.h"

namespace vitrine::desktop {

class Presenter {
 public:
  explicit Presenter(Device& device);
  // Waits for the present that is under way.
  ~Presenter();
  Presenter(const Presenter&) = delete;
  Presenter& operator=(const Presenter&) = delete;

  // One at a time: busy() must be false. Until it is again, nobody else may use the swapchain.
  void present(VkSwapchainKHR swapchain, uint32_t image, VkSemaphore drawn);
  bool busy() const;
  // What the last one came to, once.
  std::optional<VkResult> take_result();

 private:
  struct Request {
    VkSwapchainKHR swapchain;
    uint32_t image;
    VkSemaphore drawn;
  };
  void run();

  Device& device_;
  mutable std::mutex lock_;  // of all that follows, up to the thread
  std::condition_variable changed_;
  std::optional<Request> request_;
  std::optional<VkResult> result_;
  bool ending_ = false;
  std::thread thread_;
};

// vkQueuePresentKHR with its structure.
VkResult present_image(Device& device, VkSwapchainKHR swapchain, uint32_t image, VkSemaphore drawn);

}  // namespace vitrine::desktop
