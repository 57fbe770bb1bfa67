// What the layer keeps of an instance, a physical device and a device, and the functions of whoever lies
// below it. Objects are found by the loader's table in their first word, which all handles of one device
// share.
#pragma once

#include <vulkan/vk_layer.h>
#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/pretend/layer/complaints.h"
#include "tests/pretend/layer/copy_engine.h"
#include "tests/pretend/layer/host_view.h"
#include "tests/pretend/layer/profile.h"

namespace vitrine::pretend {

// A function of the layer's, under Vulkan's name for it.
struct Hook {
  std::string_view name;
  PFN_vkVoidFunction function;
};
// Compiles only where the function is what Vulkan calls under that name.
#define PRETEND_HOOK(name, function) \
  Hook { #name, reinterpret_cast<PFN_vkVoidFunction>(static_cast<PFN_##name>(&function)) }

// Of whoever lies below, what the layer calls.
// clang-format off
#define PRETEND_NEXT_OF_INSTANCE(X) \
  X(vkDestroyInstance) X(vkEnumeratePhysicalDevices) X(vkEnumerateDeviceExtensionProperties) \
  X(vkGetPhysicalDeviceProperties) X(vkGetPhysicalDeviceProperties2) X(vkGetPhysicalDeviceFeatures2) \
  X(vkGetPhysicalDeviceMemoryProperties) X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkGetPhysicalDeviceSurfaceSupportKHR) X(vkCreateDebugUtilsMessengerEXT) \
  X(vkDestroyDebugUtilsMessengerEXT)
#define PRETEND_NEXT_OF_DEVICE(X) \
  X(vkGetDeviceProcAddr) X(vkDestroyDevice) X(vkGetDeviceQueue) X(vkAllocateMemory) X(vkFreeMemory) \
  X(vkMapMemory) X(vkUnmapMemory) X(vkCreateBuffer) X(vkDestroyBuffer) X(vkGetBufferMemoryRequirements) \
  X(vkGetBufferMemoryRequirements2) X(vkGetImageMemoryRequirements) X(vkGetImageMemoryRequirements2) \
  X(vkGetDeviceBufferMemoryRequirements) X(vkGetDeviceImageMemoryRequirements) X(vkBindBufferMemory) \
  X(vkBindBufferMemory2) X(vkGetBufferDeviceAddress) \
  X(vkCreateImage) X(vkAllocateDescriptorSets) X(vkUpdateDescriptorSets) X(vkCreatePipelineLayout) \
  X(vkCreateComputePipelines) X(vkCreatePipelineCache) X(vkGetPipelineCacheData) X(vkCreateCommandPool) X(vkDestroyCommandPool) \
  X(vkAllocateCommandBuffers) X(vkFreeCommandBuffers) X(vkBeginCommandBuffer) X(vkCmdPipelineBarrier) \
  X(vkCmdPipelineBarrier2) X(vkCmdCopyBuffer) X(vkCmdCopyBuffer2) X(vkCmdFillBuffer) \
  X(vkCmdUpdateBuffer) X(vkCmdCopyImageToBuffer) X(vkCmdCopyImageToBuffer2) X(vkCmdCopyQueryPoolResults) \
  X(vkCmdBindDescriptorSets) X(vkCmdPushConstants) X(vkCmdDispatch) X(vkCmdDispatchBase) \
  X(vkCmdDispatchIndirect) X(vkCmdExecuteCommands) X(vkQueueSubmit) X(vkQueueSubmit2) X(vkQueueWaitIdle) \
  X(vkDeviceWaitIdle) X(vkWaitSemaphores) X(vkSignalSemaphore) X(vkDestroySemaphore) \
  X(vkCmdWriteTimestamp2) X(vkResetQueryPool) X(vkGetQueryPoolResults) X(vkDestroyQueryPool) \
  X(vkQueueBindSparse) X(vkQueuePresentKHR) X(vkQueueBeginDebugUtilsLabelEXT) \
  X(vkQueueEndDebugUtilsLabelEXT) X(vkQueueInsertDebugUtilsLabelEXT) X(vkSetDebugUtilsObjectNameEXT) \
  X(vkSetDebugUtilsObjectTagEXT)
// clang-format on

#define PRETEND_MEMBER(name) PFN_##name name = nullptr;
struct NextOfInstance {
  PRETEND_NEXT_OF_INSTANCE(PRETEND_MEMBER)
};
struct NextOfDevice {
  PRETEND_NEXT_OF_DEVICE(PRETEND_MEMBER)
};
#undef PRETEND_MEMBER

struct Instance;

struct PhysicalDevice {
  Instance* instance = nullptr;
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties real{};  // the driver's own
  VkPhysicalDeviceLimits limits{};    // as told
  std::array<uint8_t, VK_UUID_SIZE> uuid{};
  std::vector<uint32_t> real_types;  // for each memory type that is told, the driver's
  uint32_t real_family = 0;          // behind all queue families that are told
  std::mutex mutex;
  std::vector<uint64_t> heap_used;

  const Profile& profile() const;
  uint32_t told_types(uint32_t real_bits, bool for_buffers) const;
};

struct Instance {
  VkInstance handle = VK_NULL_HANDLE;
  PFN_vkGetInstanceProcAddr get = nullptr;
  NextOfInstance next;
  Profile profile;
  Complaints complaints;
  std::mutex mutex;
  std::map<VkPhysicalDevice, std::unique_ptr<PhysicalDevice>> physical;

  PhysicalDevice& of(VkPhysicalDevice handle);
};

struct FreedMemory {
  void operator()(void* memory) const;
};
struct Allocation {
  uint32_t type = 0;
  uint64_t bytes = 0;
  std::byte* driver_view = nullptr;                   // the driver's mapping, from the first need of it on
  std::unique_ptr<std::byte, FreedMemory> host_copy;  // what the program gets to see of it
  bool mapped = false;
  uint64_t map_begin = 0, map_end = 0;
};

struct BufferRecord {
  uint64_t bytes = 0;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint64_t offset = 0;
  VkDeviceAddress address = 0;
  bool two_copies = false;  // of the memory that it is bound to
};
struct BoundRange {
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t offset = 0, bytes = 0;
};
using DescriptorBindings = std::map<std::pair<uint32_t, uint32_t>, BoundRange>;  // binding and array element

struct Recording {
  VkCommandPool pool = VK_NULL_HANDLE;
  bool only_copies = false;      // its queue's family does nothing else
  std::vector<CopyStep> copies;  // then these are what is done, events among them
  std::vector<Event> events;
  std::map<uint32_t, VkDescriptorSet> sets;
  std::vector<std::byte> push_constants;

  void add_copy(const CopyStep& step) {
    if (only_copies) copies.push_back(step);
  }
  void add_event(const Event& event) {
    events.push_back(event);
    add_copy(event);
  }
};

// What the program holds as its VkQueue; several stand for the driver's one, those that only copy for nothing
// of the driver's.
struct Queue {
  void* loader = nullptr;
  struct Device* device = nullptr;
  VkQueue real = VK_NULL_HANDLE;
  std::unique_ptr<CopyEngine> engine;
};

struct Device {
  VkDevice handle = VK_NULL_HANDLE;
  PhysicalDevice* physical = nullptr;
  NextOfDevice next;
  PFN_vkSetDeviceLoaderData set_loader_data = nullptr;

  std::mutex mutex;  // of all that follows
  std::unordered_map<VkDeviceMemory, Allocation> memory;
  std::unordered_map<VkBuffer, BufferRecord> buffers;
  std::unordered_map<VkDescriptorSet, DescriptorBindings> descriptors;
  std::unordered_map<VkCommandBuffer, Recording> recordings;
  std::unordered_map<VkCommandPool, uint32_t> pool_families;
  std::map<std::pair<VkQueryPool, uint32_t>, uint64_t> stamps;             // of queues that only copy
  std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<Queue>> queues;  // family and number
  HostView host_view;

  std::mutex queue_mutex;  // of the driver's queue
  Wanted wanted;

  const Profile& profile() const { return physical->profile(); }
  bool only_copies(uint32_t family) const {
    const VkQueueFlags flags = profile().queue_families.at(family).flags;
    return (flags & (VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT)) == 0;
  }
  void complain(const char* id, const std::string& text) const {
    physical->instance->complaints.say(id, text);
  }
  // Where a buffer's bytes lie. Nothing where the host can't see them late, so that nobody has to care.
  std::optional<MemoryRange> late_range(VkBuffer buffer, uint64_t offset, uint64_t bytes) const;
};

// All of a piece of memory as the driver maps it; null where it can't. The device's mutex is held.
std::byte* driver_view(Device& device, VkDeviceMemory memory);

Instance& instance_of(const void* instance_or_physical_device);
PhysicalDevice& physical_of(VkPhysicalDevice handle);
Device& device_of(const void* device_or_command_buffer);
inline Queue& queue_of(VkQueue queue) { return *reinterpret_cast<Queue*>(queue); }

void keep(std::unique_ptr<Instance> instance);
void keep(std::unique_ptr<Device> device);
std::unique_ptr<Instance> release_instance(VkInstance instance);
std::unique_ptr<Device> release_device(VkDevice device);

// Each file's hooks.
std::vector<Hook> physical_device_hooks();
std::vector<Hook> memory_hooks();
std::vector<Hook> buffer_hooks();
std::vector<Hook> descriptor_hooks();
std::vector<Hook> command_hooks();
std::vector<Hook> queue_hooks();
std::vector<Hook> query_hooks();
std::vector<Hook> pipeline_hooks();

}  // namespace vitrine::pretend
