// Memory that the host can't map, memory that isn't coherent, and budgets that end. Of memory that isn't
// coherent there are two copies: the driver's, which the device works on, and ours, which the program writes
// and reads. Only flushes and invalidations copy between them.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "tests/pretend/layer/limits.h"
#include "tests/pretend/layer/state.h"

namespace vitrine::pretend {
namespace {

constexpr size_t page = 4096;
// What the host sees of memory that it has neither written nor invalidated. No number that a test waits for.
constexpr int never_written = 0xdb;

bool take(PhysicalDevice& device, uint32_t heap, uint64_t bytes) {
  const std::scoped_lock lock(device.mutex);
  if (bytes > device.profile().heaps[heap].budget - device.heap_used[heap]) return false;
  device.heap_used[heap] += bytes;
  return true;
}

void give_back(PhysicalDevice& device, uint32_t heap, uint64_t bytes) {
  const std::scoped_lock lock(device.mutex);
  device.heap_used[heap] -= bytes;
}

VKAPI_ATTR VkResult VKAPI_CALL allocate(VkDevice handle, const VkMemoryAllocateInfo* info,
                                        const VkAllocationCallbacks* callbacks, VkDeviceMemory* memory) {
  Device& device = device_of(handle);
  const Profile& profile = device.profile();
  if (info->memoryTypeIndex >= profile.memory_types.size()) {
    device.complain("pretend-memory-type",
                    "there is no memory type " + std::to_string(info->memoryTypeIndex));
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  const uint64_t most =
      limit_of(profile.limits, "maxMemoryAllocationSize", std::numeric_limits<uint64_t>::max());
  const uint32_t heap = profile.memory_types[info->memoryTypeIndex].heap;
  if (info->allocationSize > most || !take(*device.physical, heap, info->allocationSize))
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;

  VkMemoryAllocateInfo real = *info;
  real.memoryTypeIndex = device.physical->real_types[info->memoryTypeIndex];
  const VkResult result = device.next.vkAllocateMemory(handle, &real, callbacks, memory);
  if (result != VK_SUCCESS) {
    give_back(*device.physical, heap, info->allocationSize);
    return result;
  }
  Allocation made;
  made.type = info->memoryTypeIndex;
  made.bytes = info->allocationSize;
  const std::scoped_lock lock(device.mutex);
  device.memory[*memory] = std::move(made);
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL free_memory(VkDevice handle, VkDeviceMemory memory,
                                       const VkAllocationCallbacks* callbacks) {
  Device& device = device_of(handle);
  if (memory != VK_NULL_HANDLE) {
    const std::scoped_lock lock(device.mutex);
    const auto node = device.memory.extract(memory);
    device.host_view.forget(memory);
    if (node) {
      give_back(*device.physical, device.profile().memory_types[node.mapped().type].heap,
                node.mapped().bytes);
    }
  }
  device.next.vkFreeMemory(handle, memory, callbacks);
}

VkResult make_copy(Allocation& allocation) {
  const size_t room = (allocation.bytes + page - 1) / page * page;
  allocation.host_copy.reset(static_cast<std::byte*>(std::aligned_alloc(page, room)));
  if (!allocation.host_copy) return VK_ERROR_OUT_OF_HOST_MEMORY;
  std::memset(allocation.host_copy.get(), never_written, room);
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL map(VkDevice handle, VkDeviceMemory memory, VkDeviceSize offset,
                                   VkDeviceSize bytes, VkMemoryMapFlags, void** data) {
  Device& device = device_of(handle);
  const std::scoped_lock lock(device.mutex);
  Allocation& allocation = device.memory.at(memory);
  const MemoryType& type = device.profile().memory_types[allocation.type];
  if ((type.flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) == 0) {
    device.complain("pretend-map", "memory of type " + std::to_string(allocation.type) +
                                       " is mapped, which the host can't see");
    return VK_ERROR_MEMORY_MAP_FAILED;
  }
  std::byte* view = driver_view(device, memory);
  if (view == nullptr) return VK_ERROR_MEMORY_MAP_FAILED;
  if (type.keeps_two_copies()) {
    if (!allocation.host_copy) {
      const VkResult result = make_copy(allocation);
      if (result != VK_SUCCESS) return result;
    }
    view = allocation.host_copy.get();
  }
  allocation.mapped = true;
  allocation.map_begin = offset;
  allocation.map_end = bytes == VK_WHOLE_SIZE ? allocation.bytes : offset + bytes;
  *data = view + offset;
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL unmap(VkDevice handle, VkDeviceMemory memory) {
  Device& device = device_of(handle);
  const std::scoped_lock lock(device.mutex);
  device.memory.at(memory).mapped = false;  // the driver's mapping goes with the memory
}

// The allocation and the bytes of it that a flush or an invalidation is about; nothing where nothing has to
// be copied, since there is one copy only.
struct Synced {
  Allocation* allocation = nullptr;
  uint64_t begin = 0, end = 0;
};
std::optional<Synced> synced(Device& device, const VkMappedMemoryRange& range, const std::string& what) {
  Allocation& allocation = device.memory.at(range.memory);
  if (!device.profile().memory_types[allocation.type].keeps_two_copies()) return std::nullopt;
  const auto complain = [&](const std::string& why) {
    device.complain("pretend-mapped-range", what + " of bytes " + std::to_string(range.offset) + " and " +
                                                std::to_string(range.size) + " behind: " + why);
  };
  if (!allocation.mapped) {
    complain("the memory isn't mapped");
    return std::nullopt;
  }
  const uint64_t end = range.size == VK_WHOLE_SIZE ? allocation.map_end : range.offset + range.size;
  if (range.offset < allocation.map_begin || end > allocation.map_end || range.offset > end) {
    complain("only bytes " + std::to_string(allocation.map_begin) + " to " +
             std::to_string(allocation.map_end) + " are mapped");
    return std::nullopt;
  }
  const uint64_t atom = device.physical->limits.nonCoherentAtomSize;
  if (range.offset % atom != 0 || (end % atom != 0 && end != allocation.bytes)) {
    complain("it doesn't begin and end at multiples of nonCoherentAtomSize, which is " +
             std::to_string(atom));
  }
  return Synced{&allocation, range.offset, end};
}

VKAPI_ATTR VkResult VKAPI_CALL flush(VkDevice handle, uint32_t count, const VkMappedMemoryRange* ranges) {
  Device& device = device_of(handle);
  const std::scoped_lock lock(device.mutex);
  for (const VkMappedMemoryRange& range : std::span(ranges, count)) {
    const auto bytes = synced(device, range, "a flush");
    if (!bytes) continue;
    std::memcpy(bytes->allocation->driver_view + bytes->begin,
                bytes->allocation->host_copy.get() + bytes->begin, bytes->end - bytes->begin);
  }
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL invalidate(VkDevice handle, uint32_t count,
                                          const VkMappedMemoryRange* ranges) {
  Device& device = device_of(handle);
  const std::scoped_lock lock(device.mutex);
  for (const VkMappedMemoryRange& range : std::span(ranges, count)) {
    const auto bytes = synced(device, range, "an invalidation");
    if (!bytes) continue;
    const auto hidden = device.host_view.hidden({range.memory, bytes->begin, bytes->end});
    if (!hidden.empty()) {
      device.complain(
          "pretend-host-read",
          "the host goes on seeing old bytes: between what the device wrote to bytes " +
              std::to_string(hidden.front().first) + " to " + std::to_string(hidden.front().second) +
              " of a piece of memory and their invalidation no barrier made it visible to the host "
              "(VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT)");
    }
    visit_without(bytes->begin, bytes->end, hidden, [&](uint64_t begin, uint64_t end) {
      std::memcpy(bytes->allocation->host_copy.get() + begin, bytes->allocation->driver_view + begin,
                  end - begin);
    });
  }
  return VK_SUCCESS;
}

}  // namespace

std::byte* driver_view(Device& device, VkDeviceMemory memory) {
  Allocation& allocation = device.memory.at(memory);
  void* data = nullptr;
  if (allocation.driver_view == nullptr &&
      device.next.vkMapMemory(device.handle, memory, 0, VK_WHOLE_SIZE, 0, &data) == VK_SUCCESS) {
    allocation.driver_view = static_cast<std::byte*>(data);
  }
  return allocation.driver_view;
}

std::vector<Hook> memory_hooks() {
  return {PRETEND_HOOK(vkAllocateMemory, allocate),
          PRETEND_HOOK(vkFreeMemory, free_memory),
          PRETEND_HOOK(vkMapMemory, map),
          PRETEND_HOOK(vkUnmapMemory, unmap),
          PRETEND_HOOK(vkFlushMappedMemoryRanges, flush),
          PRETEND_HOOK(vkInvalidateMappedMemoryRanges, invalidate)};
}

}  // namespace vitrine::pretend
