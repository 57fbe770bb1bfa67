// A dispatch with its pipeline and its actual buffers: what a command buffer records.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/graph/op.h"
#include "runtime/graph/submissions.h"
#include "runtime/vk/device.h"
#include "runtime/vk/memory.h"
#include "runtime/vk/pipeline.h"

namespace vitrine {

struct BufferSlice {
  const Buffer* buffer = nullptr;
  uint64_t offset = 0, bytes = 0;
};

// The descriptor sets of one owner, sized exactly for the dispatches that it was made for.
class DescriptorSets {
 public:
  DescriptorSets(Device& device, std::span<const Dispatch* const> dispatches, uint32_t copies);
  ~DescriptorSets();
  DescriptorSets(const DescriptorSets&) = delete;
  DescriptorSets& operator=(const DescriptorSets&) = delete;
  // Allocates one set and writes the slices to its bindings in order.
  VkDescriptorSet make(VkDescriptorSetLayout layout, std::span<const BufferSlice> slices);

 private:
  Device& device_;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
};

class BoundDispatch {
 public:
  BoundDispatch(const Dispatch& dispatch, std::shared_ptr<const Pipeline> pipeline, DescriptorSets& sets,
                std::span<const BufferSlice> slices);
  void record(Device& device, VkCommandBuffer commands) const;
  // Of its workgroups only these.
  void record(Device& device, VkCommandBuffer commands, const GroupRange& part) const;

 private:
  void bind(Device& device, VkCommandBuffer commands) const;

  std::shared_ptr<const Pipeline> pipeline_;
  VkDescriptorSet set_ = VK_NULL_HANDLE;
  std::vector<std::byte> push_;
  std::array<uint32_t, 3> groups_;
};

// A command pool with its command buffers; the pool's death frees them.
class CommandPool {
 public:
  explicit CommandPool(Device& device);  // for the queue that computes
  CommandPool(Device& device, uint32_t family);
  ~CommandPool();
  CommandPool(const CommandPool&) = delete;
  CommandPool& operator=(const CommandPool&) = delete;
  VkCommandBuffer begin(VkCommandBufferUsageFlags flags = 0);
  void end(VkCommandBuffer commands);
  void reset();  // frees all of them

 private:
  Device& device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::vector<VkCommandBuffer> buffers_;
};

// One global memory barrier between two kinds of work.
void record_barrier(Device& device, VkCommandBuffer commands, VkPipelineStageFlags2 from_stages,
                    VkAccessFlags2 from_access, VkPipelineStageFlags2 to_stages, VkAccessFlags2 to_access);
// The one between dispatches: what was written is seen, what was read may be overwritten.
void record_compute_barrier(Device& device, VkCommandBuffer commands);

// Between all that was submitted to the queue before and what follows: what that wrote is seen, what it read
// may be overwritten.
void record_queue_barrier(Device& device, VkCommandBuffer commands);

// Records with `record`, submits and waits: for loading and debugging, not for running. What it records comes
// behind all that was submitted before, and the host sees what it wrote.
void run_once(Device& device, const std::function<void(VkCommandBuffer)>& record);

}  // namespace vitrine
