// Owns one object of a device and destroys it.
#pragma once

#include <vulkan/vulkan_core.h>

#include <utility>

namespace vitrine {

template <typename Handle>
class DeviceHandle {
 public:
  using Destroy = void(VKAPI_PTR*)(VkDevice, Handle, const VkAllocationCallbacks*);

  DeviceHandle() = default;
  // `destroy` is the function of the device's table: device.vk().vkDestroyPipeline.
  DeviceHandle(VkDevice device, Handle handle, Destroy destroy)
      : device_(device), handle_(handle), destroy_(destroy) {}
  DeviceHandle(DeviceHandle&& other) noexcept { swap(other); }
  DeviceHandle& operator=(DeviceHandle&& other) noexcept {
    DeviceHandle(std::move(other)).swap(*this);
    return *this;
  }
  ~DeviceHandle() {
    if (handle_ != VK_NULL_HANDLE) destroy_(device_, handle_, nullptr);
  }

  Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != VK_NULL_HANDLE; }

 private:
  void swap(DeviceHandle& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    std::swap(destroy_, other.destroy_);
  }

  VkDevice device_ = VK_NULL_HANDLE;
  Handle handle_ = VK_NULL_HANDLE;
  Destroy destroy_ = nullptr;
};

}  // namespace vitrine
