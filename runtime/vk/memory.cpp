#include "runtime/vk/memory.h"

#include <volk.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/vk/device.h"
#include "runtime/vk/result.h"
#include "runtime/vk/vma.h"

namespace vitrine {
namespace {

VmaAllocationCreateInfo allocation_info(BufferKind kind, uint64_t bytes, bool unified) {
  VmaAllocationCreateInfo info{};
  info.requiredFlags = required_memory(kind);
  switch (kind) {
    case BufferKind::device:
    case BufferKind::staged:
      info.usage = VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE;
      if (!unified && bytes >= alone_bytes) info.flags = VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
      break;
    case BufferKind::upload:
    case BufferKind::geometry:
      info.usage = VMA_MEMORY_USAGE_AUTO_PREFER_HOST;
      info.flags = VMA_ALLOCATION_CREATE_MAPPED_BIT | VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT;
      break;
    case BufferKind::readback:
      info.usage = VMA_MEMORY_USAGE_AUTO_PREFER_HOST;
      info.flags = VMA_ALLOCATION_CREATE_MAPPED_BIT | VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT;
      break;
    case BufferKind::direct:
    case BufferKind::direct_read:
      // The usual answer of the allocator for memory that the host reads is host memory; here only a
      // type that is both will do.
      info.usage = VMA_MEMORY_USAGE_UNKNOWN;
      info.flags = VMA_ALLOCATION_CREATE_MAPPED_BIT;
      info.preferredFlags = VK_MEMORY_PROPERTY_HOST_CACHED_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
      break;
  }
  return info;
}

// The memory types whose heap is as large as that; all that is to be had of others can't hold it, and asking
// for more than a heap has is an error.
uint32_t types_with_room(const Capabilities& device, uint64_t bytes) {
  uint32_t types = 0;
  for (size_t i = 0; i < device.memory_types.size(); ++i) {
    if (device.heaps[device.memory_types[i].heap].bytes >= bytes) types |= uint32_t{1} << i;
  }
  return types;
}

// Free bytes in the fullest hope: the largest remainder among the heaps that the kind would use.
uint64_t free_bytes(const Device& device, bool on_device) {
  uint64_t most = 0;
  const std::vector<HeapBudget> budgets = device.heap_budgets();
  const std::vector<MemoryHeap>& heaps = device.capabilities().heaps;
  const bool has_host_heap =
      std::ranges::any_of(heaps, [](const MemoryHeap& heap) { return !heap.device_local; });
  for (size_t i = 0; i < budgets.size(); ++i) {
    if (heaps[i].device_local == on_device || !has_host_heap) most = std::max(most, budgets[i].free_bytes());
  }
  return most;
}

std::string subject(BufferKind kind, uint64_t bytes, std::string_view name) {
  return "buffer '" + std::string(name) + "' needs " + std::to_string(bytes) + " bytes of " +
         std::string(name_of(kind)) + " memory";
}

}  // namespace

std::string_view name_of(BufferKind kind) {
  switch (kind) {
    case BufferKind::device:
    case BufferKind::staged:
      return "device";
    case BufferKind::upload:
      return "upload";
    case BufferKind::readback:
      return "readback";
    case BufferKind::geometry:
      return "geometry";
    case BufferKind::direct:
      return "direct";
    case BufferKind::direct_read:
      return "direct (to be read)";
  }
  return "?";
}

VkMemoryPropertyFlags required_memory(BufferKind kind) {
  switch (kind) {
    case BufferKind::device:
    case BufferKind::staged:
      // Required, not preferred: a model whose weights went to the host's memory without a word would run
      // many times slower than one that is refused for want of memory.
      return VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    case BufferKind::upload:
    case BufferKind::geometry:
    case BufferKind::readback:
      return VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    case BufferKind::direct:
      return VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
             VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    case BufferKind::direct_read:
      // What phones cache is often not coherent; invalidate() comes before the host reads.
      return VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
             VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  }
  return 0;
}

Buffer::Buffer(Device& device, BufferKind kind, uint64_t bytes, std::string_view name)
    : device_(&device), kind_(kind), bytes_(bytes) {
  const Capabilities& capabilities = device.capabilities();
  if (bytes == 0)
    throw Error(ErrorCode::failed, "buffer '" + std::string(name) + "' was asked for with 0 bytes");
  if ((kind == BufferKind::direct && !capabilities.unified_memory()) ||
      (kind == BufferKind::direct_read && !capabilities.unified_cached_memory())) {
    throw Error(ErrorCode::failed, subject(kind, bytes, name) + " but device '" + capabilities.name +
                                       "' has no memory that is both its own and the host's");
  }
  const uint64_t largest = std::min(capabilities.max_buffer_bytes, capabilities.max_allocation);
  if (bytes > largest) {
    throw Error(ErrorCode::failed, subject(kind, bytes, name) + ", the most that device '" +
                                       capabilities.name + "' gives in one piece is " +
                                       std::to_string(largest));
  }

  VkBufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (kind == BufferKind::geometry)
    info.usage |= VK_BUFFER_USAGE_VERTEX_BUFFER_BIT | VK_BUFFER_USAGE_INDEX_BUFFER_BIT;
  // Concurrent rather than handed over: that would take two barriers on either queue for each buffer and way,
  // for nothing, as only images lie otherwise where several families see them.
  const std::array<uint32_t, 2> families{device.queue_family(), device.copy_queue_family()};
  if (kind == BufferKind::staged && families[0] != families[1]) {
    info.sharingMode = VK_SHARING_MODE_CONCURRENT;
    info.queueFamilyIndexCount = static_cast<uint32_t>(families.size());
    info.pQueueFamilyIndices = families.data();
  }
  const bool addressable = capabilities.supports(Need::addresses);
  if (addressable) info.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  VmaAllocationCreateInfo allocation = allocation_info(kind, bytes, capabilities.unified_memory());
  allocation.memoryTypeBits = types_with_room(capabilities, bytes);
  VmaAllocationInfo made{};
  const VkResult result =
      allocation.memoryTypeBits == 0
          ? VK_ERROR_OUT_OF_DEVICE_MEMORY
          : vmaCreateBuffer(device.allocator(), &info, &allocation, &handle_, &allocation_, &made);
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY) {
    throw Error(ErrorCode::failed, "out of memory on device '" + capabilities.name +
                                       "': " + subject(kind, bytes, name) + ", " +
                                       std::to_string(free_bytes(device, on_device())) + " are free");
  }
  check(result, "vmaCreateBuffer");
  mapped_ = static_cast<std::byte*>(made.pMappedData);
  if (addressable) {
    const VkBufferDeviceAddressInfo where{
        .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .pNext = nullptr, .buffer = handle_};
    address_ = device.vk().vkGetBufferDeviceAddress(device.handle(), &where);
  }
  device.count_allocated(on_device(), bytes);
  device.set_name(VK_OBJECT_TYPE_BUFFER, handle_, name);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  Buffer(std::move(other)).swap(*this);
  return *this;
}

Buffer::~Buffer() {
  if (handle_ == VK_NULL_HANDLE) return;
  vmaDestroyBuffer(device_->allocator(), handle_, allocation_);
  device_->count_freed(on_device(), bytes_);
}

void Buffer::swap(Buffer& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(kind_, other.kind_);
  std::swap(bytes_, other.bytes_);
  std::swap(handle_, other.handle_);
  std::swap(allocation_, other.allocation_);
  std::swap(address_, other.address_);
  std::swap(mapped_, other.mapped_);
}

void Buffer::flush(uint64_t offset, uint64_t bytes) const {
  check(vmaFlushAllocation(device_->allocator(), allocation_, offset, bytes), "vmaFlushAllocation");
}

void Buffer::invalidate(uint64_t offset, uint64_t bytes) const {
  check(vmaInvalidateAllocation(device_->allocator(), allocation_, offset, bytes), "vmaInvalidateAllocation");
}

}  // namespace vitrine
