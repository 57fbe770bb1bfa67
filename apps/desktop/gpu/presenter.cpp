#include "apps/desktop/gpu/presenter.h"

#include <utility>

namespace vitrine::desktop {

VkResult present_image(Device& device, VkSwapchainKHR swapchain, uint32_t image, VkSemaphore drawn) {
  VkPresentInfoKHR info{VK_STRUCTURE_TYPE_PRESENT_INFO_KHR};
  info.waitSemaphoreCount = 1;
  info.pWaitSemaphores = &drawn;
  info.swapchainCount = 1;
  info.pSwapchains = &swapchain;
  info.pImageIndices = &image;
  return device.present(info);
}

Presenter::Presenter(Device& device) : device_(device), thread_([this] { run(); }) {}

Presenter::~Presenter() {
  {
    const std::scoped_lock lock(lock_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Presenter::present(VkSwapchainKHR swapchain, uint32_t image, VkSemaphore drawn) {
  {
    const std::scoped_lock lock(lock_);
    request_ = Request{swapchain, image, drawn};
  }
  changed_.notify_all();
}

bool Presenter::busy() const {
  const std::scoped_lock lock(lock_);
  return request_.has_value();
}

std::optional<VkResult> Presenter::take_result() {
  const std::scoped_lock lock(lock_);
  return std::exchange(result_, std::nullopt);
}

void Presenter::run() {
  std::unique_lock lock(lock_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || request_; });
    if (!request_) return;
    const Request request = *request_;
    lock.unlock();
    const VkResult result = present_image(device_, request.swapchain, request.image, request.drawn);
    lock.lock();
    result_ = result;
    request_.reset();
  }
}

}  // namespace vitrine::desktop
