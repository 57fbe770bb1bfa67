#include "runtime/graph/bound_dispatch.h"

#include <volk.h>

#include <algorithm>
#include <cstring>

#include "runtime/vk/handle.h"
#include "runtime/vk/result.h"

namespace vitrine {

DescriptorSets::DescriptorSets(Device& device, std::span<const Dispatch* const> dispatches, uint32_t copies)
    : device_(device) {
  uint32_t sets = 0, buffers = 0;
  for (const Dispatch* dispatch : dispatches) {
    if (dispatch->shader->bind != BindMode::descriptors) continue;
    sets += copies;
    buffers += copies * to_u32(dispatch->operands.size());
  }
  if (sets == 0) return;
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, std::max(1u, buffers)};
  VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  info.maxSets = sets;
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  check(device_.vk().vkCreateDescriptorPool(device_.handle(), &info, nullptr, &pool_),
        "vkCreateDescriptorPool");
}

DescriptorSets::~DescriptorSets() {
  if (pool_) device_.vk().vkDestroyDescriptorPool(device_.handle(), pool_, nullptr);
}

VkDescriptorSet DescriptorSets::make(VkDescriptorSetLayout layout, std::span<const BufferSlice> slices) {
  VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  allocate.descriptorPool = pool_;
  allocate.descriptorSetCount = 1;
  allocate.pSetLayouts = &layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  check(device_.vk().vkAllocateDescriptorSets(device_.handle(), &allocate, &set), "vkAllocateDescriptorSets");
  std::vector<VkDescriptorBufferInfo> infos;
  std::vector<VkWriteDescriptorSet> writes;
  infos.reserve(slices.size());
  for (const BufferSlice& slice : slices) {
    infos.push_back({slice.buffer->handle(), slice.offset, slice.bytes});
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set;
    write.dstBinding = to_u32(writes.size());
    write.descriptorCount = 1;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = &infos.back();
    writes.push_back(write);
  }
  device_.vk().vkUpdateDescriptorSets(device_.handle(), to_u32(writes.size()), writes.data(), 0, nullptr);
  return set;
}

BoundDispatch::BoundDispatch(const Dispatch& dispatch, std::shared_ptr<const Pipeline> pipeline,
                             DescriptorSets& sets, std::span<const BufferSlice> slices)
    : pipeline_(std::move(pipeline)), groups_(dispatch.groups) {
  if (dispatch.shader->bind == BindMode::addresses) {
    // Addresses first, parameters after them.
    push_.resize(slices.size() * sizeof(uint64_t));
    for (size_t i = 0; i < slices.size(); ++i) {
      const uint64_t address = slices[i].buffer->address() + slices[i].offset;
      std::memcpy(push_.data() + i * sizeof address, &address, sizeof address);
    }
  } else if (!slices.empty()) {
    set_ = sets.make(pipeline_->set_layout(), slices);
  }
  push_.insert(push_.end(), dispatch.params.begin(), dispatch.params.end());
}

void BoundDispatch::bind(Device& device, VkCommandBuffer commands) const {
  const VolkDeviceTable& vk = device.vk();
  vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_->handle());
  if (set_) {
    vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_->layout(), 0, 1, &set_, 0,
                               nullptr);
  }
  if (!push_.empty()) {
    vk.vkCmdPushConstants(commands, pipeline_->layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, to_u32(push_.size()),
                          push_.data());
  }
}

void BoundDispatch::record(Device& device, VkCommandBuffer commands) const {
  bind(device, commands);
  device.vk().vkCmdDispatch(commands, groups_[0], groups_[1], groups_[2]);
}

void BoundDispatch::record(Device& device, VkCommandBuffer commands, const GroupRange& part) const {
  bind(device, commands);
  device.vk().vkCmdDispatchBase(commands, part.first[0], part.first[1], part.first[2], part.groups[0],
                                part.groups[1], part.groups[2]);
}

CommandPool::CommandPool(Device& device) : CommandPool(device, device.queue_family()) {}

CommandPool::CommandPool(Device& device, uint32_t family) : device_(device) {
  VkCommandPoolCreateInfo info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  info.queueFamilyIndex = family;
  check(device_.vk().vkCreateCommandPool(device_.handle(), &info, nullptr, &pool_), "vkCreateCommandPool");
}

CommandPool::~CommandPool() { device_.vk().vkDestroyCommandPool(device_.handle(), pool_, nullptr); }

VkCommandBuffer CommandPool::begin(VkCommandBufferUsageFlags flags) {
  VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocate.commandPool = pool_;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  check(device_.vk().vkAllocateCommandBuffers(device_.handle(), &allocate, &commands),
        "vkAllocateCommandBuffers");
  buffers_.push_back(commands);
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = flags;
  check(device_.vk().vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
  return commands;
}

void CommandPool::end(VkCommandBuffer commands) {
  check(device_.vk().vkEndCommandBuffer(commands), "vkEndCommandBuffer");
}

void CommandPool::reset() {
  if (buffers_.empty()) return;
  device_.vk().vkFreeCommandBuffers(device_.handle(), pool_, to_u32(buffers_.size()), buffers_.data());
  buffers_.clear();
}

void record_barrier(Device& device, VkCommandBuffer commands, VkPipelineStageFlags2 from_stages,
                    VkAccessFlags2 from_access, VkPipelineStageFlags2 to_stages, VkAccessFlags2 to_access) {
  VkMemoryBarrier2 barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER_2};
  barrier.srcStageMask = from_stages;
  barrier.srcAccessMask = from_access;
  barrier.dstStageMask = to_stages;
  barrier.dstAccessMask = to_access;
  VkDependencyInfo dependency{VK_STRUCTURE_TYPE_DEPENDENCY_INFO};
  dependency.memoryBarrierCount = 1;
  dependency.pMemoryBarriers = &barrier;
  device.vk().vkCmdPipelineBarrier2(commands, &dependency);
}

void record_compute_barrier(Device& device, VkCommandBuffer commands) {
  record_barrier(device, commands, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
                 VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
                 VK_ACCESS_2_SHADER_STORAGE_READ_BIT | VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT);
}

void record_queue_barrier(Device& device, VkCommandBuffer commands) {
  constexpr VkPipelineStageFlags2 stages =
      VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_TRANSFER_BIT;
  constexpr VkAccessFlags2 writes = VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT;
  record_barrier(device, commands, stages, writes, stages,
                 writes | VK_ACCESS_2_SHADER_STORAGE_READ_BIT | VK_ACCESS_2_TRANSFER_READ_BIT);
}

void run_once(Device& device, const std::function<void(VkCommandBuffer)>& record) {
  CommandPool pool(device);
  const VkCommandBuffer commands = pool.begin(VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
  record_queue_barrier(device, commands);
  record(commands);
  record_barrier(device, commands, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_TRANSFER_BIT,
                 VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT,
                 VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
  pool.end(commands);
  VkCommandBufferSubmitInfo command_info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO};
  command_info.commandBuffer = commands;
  VkSubmitInfo2 submit{VK_STRUCTURE_TYPE_SUBMIT_INFO_2};
  submit.commandBufferInfoCount = 1;
  submit.pCommandBufferInfos = &command_info;
  // A fence of its own: waiting for the whole device would need all queues, while other threads submit.
  const VkFenceCreateInfo info{.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, .pNext = nullptr, .flags = 0};
  VkFence made = VK_NULL_HANDLE;
  check(device.vk().vkCreateFence(device.handle(), &info, nullptr, &made), "vkCreateFence");
  const DeviceHandle fence(device.handle(), made, device.vk().vkDestroyFence);
  device.submit({&submit, 1}, made);
  check(device.vk().vkWaitForFences(device.handle(), 1, &made, VK_TRUE, UINT64_MAX), "vkWaitForFences");
}

}  // namespace vitrine
