// A logical device: its compute queue, its functions, its memory allocator, and names for debuggers.
#pragma once

#include <vulkan/vulkan_core.h>

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/vk/capabilities.h"
#include "runtime/vk/instance.h"

struct VolkDeviceTable;
struct VmaAllocator_T;

namespace vitrine {

struct DeviceOptions {
  // Each heap behaves as if it held no more than this; for tests and shared machines.
  std::optional<uint64_t> heap_limit;
  // For who draws, too: a queue family that does all that it needs, dynamic rendering, and the swapchain.
  // Where the family has a second queue, frames are presented on that.
  std::optional<uint32_t> drawing_family;
};

// Bytes of the buffers alive now, and the most there ever were at once since reset_peaks().
struct MemoryUse {
  uint64_t bytes = 0, peak_bytes = 0;
};
struct MemoryStatistics {
  MemoryUse device;           // BufferKind::device and direct
  MemoryUse host;             // upload and readback
  uint64_t buffers_made = 0;  // since the device was created
};
// What the driver says of a heap (or an estimate when it lacks VK_EXT_memory_budget).
struct HeapBudget {
  uint64_t used_bytes = 0, budget_bytes = 0;
  uint64_t free_bytes() const { return budget_bytes > used_bytes ? budget_bytes - used_bytes : 0; }
};

class Device {
 public:
  Device(std::shared_ptr<Instance> instance, const PhysicalDevice& physical, DeviceOptions options = {});
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Capabilities& capabilities() const { return capabilities_; }
  const Instance& instance() const { return *instance_; }
  VkDevice handle() const { return handle_; }
  VkPhysicalDevice physical() const { return physical_; }
  uint32_t queue_family() const { return queue_family_; }
  VkQueue queue() const { return queue_; }
  // Where anything has to be staged, and there is another queue to do it, that one copies while queue()
  // computes; else queue() does both.
  bool copies_apart() const { return copy_queue_ != queue_; }
  uint32_t copy_queue_family() const { return copy_queue_family_; }
  // Of that queue, as Capabilities have them of queue().
  uint32_t copy_timestamp_bits() const { return copy_timestamp_bits_; }
  // What a profile of copies needs: queries that the host resets, as queues that only copy can't, and a pair
  // of the device's and the host's clocks read at once.
  bool resets_queries() const { return resets_queries_; }
  bool calibrates_timestamps() const { return calibrates_timestamps_; }
  // All device-level calls go through this table (the allocator's own and debug-utils apart), so that
  // a test can put counting functions in.
  VolkDeviceTable& vk() const { return *table_; }
  VmaAllocator_T* allocator() const { return allocator_; }

  // vkQueueSubmit2, one caller at a time.
  void submit(std::span<const VkSubmitInfo2> submissions, VkFence fence = VK_NULL_HANDLE);
  // The same to the queue for copies.
  void submit_copies(std::span<const VkSubmitInfo2> submissions);
  // vkQueuePresentKHR, for devices that draw. It may wait for the display; submit() doesn't wait for it where
  // presents_apart().
  VkResult present(const VkPresentInfoKHR& info);
  bool presents_apart() const { return present_queue_ != queue_; }
  void wait_idle();

  // Names and labels for debuggers and validation messages; nothing happens without debug-utils.
  template <typename Handle>
  void set_name(VkObjectType type, Handle handle, std::string_view name) const {
    set_name_of(type, (uint64_t)handle,
                name);  // a pointer or a number, by platform: only this cast does both
  }
  void begin_label(VkCommandBuffer commands, std::string_view name) const;
  void end_label(VkCommandBuffer commands) const;

  MemoryStatistics memory() const;
  void reset_peaks();
  std::vector<HeapBudget> heap_budgets() const;

  // Buffers report themselves here.
  void count_allocated(bool on_device, uint64_t bytes);
  void count_freed(bool on_device, uint64_t bytes);
  // Blocks of memory that the allocator has given out and that were not given back: 0 when all is destroyed.
  uint64_t allocations() const;

 private:
  void set_name_of(VkObjectType type, uint64_t handle, std::string_view name) const;
  void create_device(VkPhysicalDevice physical, const DeviceOptions& options);
  void destroy_device();
  void create_allocator(VkPhysicalDevice physical, const DeviceOptions& options);

  std::shared_ptr<Instance> instance_;
  Capabilities capabilities_;
  std::unique_ptr<VolkDeviceTable> table_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice handle_ = VK_NULL_HANDLE;
  uint32_t queue_family_ = 0;
  uint32_t copy_queue_family_ = 0, copy_timestamp_bits_ = 0;
  bool resets_queries_ = false, calibrates_timestamps_ = false;
  // The same one where there is no other.
  VkQueue queue_ = VK_NULL_HANDLE, present_queue_ = VK_NULL_HANDLE, copy_queue_ = VK_NULL_HANDLE;
  VmaAllocator_T* allocator_ = nullptr;
  std::mutex queue_mutex_, present_mutex_, copy_mutex_;  // of queue_, and of the others that aren't it
  mutable std::mutex memory_mutex_;
  MemoryStatistics memory_;
};

}  // namespace vitrine
