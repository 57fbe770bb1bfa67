// Device memory that owns itself: one VkBuffer with its allocation.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

struct VmaAllocation_T;

namespace vitrine {

class Device;

enum class BufferKind : uint8_t {
  device,       // device-local, not for the host
  staged,       // the same, filled or read by copies, which may have a queue of their own
  upload,       // written by the host from front to back, read by the device
  readback,     // written by the device, read by the host (cached)
  geometry,     // as upload, for vertices and indices of what is drawn
  direct,       // device-local and mapped, for the host to write; only where Capabilities::unified_memory()
  direct_read,  // the same for the host to read, cached; only where Capabilities::unified_cached_memory()
};
std::string_view name_of(BufferKind kind);

// What the memory of such a buffer has to be.
VkMemoryPropertyFlags required_memory(BufferKind kind);

class Buffer {
 public:
  Buffer() = default;
  // Throws Error(failed) with the bytes needed and the bytes free when memory runs out. `name` is for
  // debuggers and that error.
  Buffer(Device& device, BufferKind kind, uint64_t bytes, std::string_view name);
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  explicit operator bool() const { return handle_ != VK_NULL_HANDLE; }
  VkBuffer handle() const { return handle_; }
  BufferKind kind() const { return kind_; }
  uint64_t bytes() const { return bytes_; }
  // Where shaders find it; 0 when the device has no buffer addresses.
  uint64_t address() const { return address_; }
  // Its memory as the host sees it, as long as it lives; empty for BufferKind::device.
  std::span<std::byte> mapped() const { return {mapped_, mapped_ == nullptr ? 0 : bytes_}; }

  // Makes what the host wrote visible to the device, and the other way round. They cost nothing on
  // coherent memory.
  void flush(uint64_t offset = 0, uint64_t bytes = VK_WHOLE_SIZE) const;
  void invalidate(uint64_t offset = 0, uint64_t bytes = VK_WHOLE_SIZE) const;

 private:
  void swap(Buffer& other) noexcept;
  bool on_device() const { return (required_memory(kind_) & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0; }

  Device* device_ = nullptr;
  BufferKind kind_ = BufferKind::device;
  uint64_t bytes_ = 0;
  VkBuffer handle_ = VK_NULL_HANDLE;
  VmaAllocation_T* allocation_ = nullptr;
  uint64_t address_ = 0;
  std::byte* mapped_ = nullptr;
};

}  // namespace vitrine
