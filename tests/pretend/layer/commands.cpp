// Command buffers: what each writes to memory that the host sees late, and which barriers it has.
#include <algorithm>
#include <cstring>

#include "tests/pretend/layer/state.h"

namespace vitrine::pretend {
namespace {

// --- their lives

VKAPI_ATTR VkResult VKAPI_CALL create_pool(VkDevice handle, const VkCommandPoolCreateInfo* info,
                                           const VkAllocationCallbacks* callbacks, VkCommandPool* pool) {
  Device& device = device_of(handle);
  VkCommandPoolCreateInfo real = *info;
  real.queueFamilyIndex = device.physical->real_family;
  const VkResult result = device.next.vkCreateCommandPool(handle, &real, callbacks, pool);
  if (result != VK_SUCCESS) return result;
  const std::scoped_lock lock(device.mutex);
  device.pool_families[*pool] = info->queueFamilyIndex;
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL destroy_pool(VkDevice handle, VkCommandPool pool,
                                        const VkAllocationCallbacks* callbacks) {
  Device& device = device_of(handle);
  {
    const std::scoped_lock lock(device.mutex);
    device.pool_families.erase(pool);
    std::erase_if(device.recordings, [&](const auto& entry) { return entry.second.pool == pool; });
  }
  device.next.vkDestroyCommandPool(handle, pool, callbacks);
}

VKAPI_ATTR VkResult VKAPI_CALL allocate_commands(VkDevice handle, const VkCommandBufferAllocateInfo* info,
                                                 VkCommandBuffer* commands) {
  Device& device = device_of(handle);
  const VkResult result = device.next.vkAllocateCommandBuffers(handle, info, commands);
  if (result != VK_SUCCESS) return result;
  const std::scoped_lock lock(device.mutex);
  const bool only_copies = device.only_copies(device.pool_families.at(info->commandPool));
  for (uint32_t i = 0; i < info->commandBufferCount; ++i)
    device.recordings[commands[i]] = {.pool = info->commandPool, .only_copies = only_copies};
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL free_commands(VkDevice handle, VkCommandPool pool, uint32_t count,
                                         const VkCommandBuffer* commands) {
  Device& device = device_of(handle);
  {
    const std::scoped_lock lock(device.mutex);
    for (uint32_t i = 0; i < count; ++i) device.recordings.erase(commands[i]);
  }
  device.next.vkFreeCommandBuffers(handle, pool, count, commands);
}

VKAPI_ATTR VkResult VKAPI_CALL begin(VkCommandBuffer commands, const VkCommandBufferBeginInfo* info) {
  Device& device = device_of(commands);
  {
    const std::scoped_lock lock(device.mutex);
    Recording& recording = device.recordings.at(commands);
    recording = {.pool = recording.pool, .only_copies = recording.only_copies};
  }
  return device.next.vkBeginCommandBuffer(commands, info);
}

VKAPI_ATTR void VKAPI_CALL execute(VkCommandBuffer commands, uint32_t count, const VkCommandBuffer* others) {
  Device& device = device_of(commands);
  {
    const std::scoped_lock lock(device.mutex);
    for (uint32_t i = 0; i < count; ++i) {
      const Recording other = device.recordings.at(others[i]);
      Recording& into = device.recordings.at(commands);
      std::ranges::copy(other.events, std::back_inserter(into.events));
      std::ranges::copy(other.copies, std::back_inserter(into.copies));
    }
  }
  device.next.vkCmdExecuteCommands(commands, count, others);
}

// --- barriers

void add_barrier(Recording& recording, const Barrier& barrier) {
  const auto* last = recording.events.empty() ? nullptr : std::get_if<Barrier>(&recording.events.back());
  if (!last || !(*last == barrier)) recording.add_event(barrier);
}

// Of one family, whichever it is called.
template <typename Transfer>
void without_families(std::vector<Transfer>& barriers) {
  for (Transfer& one : barriers) one.srcQueueFamilyIndex = one.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
}

VKAPI_ATTR void VKAPI_CALL barrier2(VkCommandBuffer commands, const VkDependencyInfo* info) {
  Device& device = device_of(commands);
  std::vector<VkBufferMemoryBarrier2> buffers(info->pBufferMemoryBarriers,
                                              info->pBufferMemoryBarriers + info->bufferMemoryBarrierCount);
  std::vector<VkImageMemoryBarrier2> images(info->pImageMemoryBarriers,
                                            info->pImageMemoryBarriers + info->imageMemoryBarrierCount);
  {
    const std::scoped_lock lock(device.mutex);
    Recording& recording = device.recordings.at(commands);
    for (const VkMemoryBarrier2& one : std::span(info->pMemoryBarriers, info->memoryBarrierCount)) {
      add_barrier(recording, {one.srcStageMask, one.srcAccessMask, one.dstStageMask, one.dstAccessMask, {}});
    }
    for (const VkBufferMemoryBarrier2& one : buffers) {
      const auto range = device.late_range(one.buffer, one.offset, one.size);
      if (!range) continue;
      add_barrier(recording,
                  {one.srcStageMask, one.srcAccessMask, one.dstStageMask, one.dstAccessMask, range});
    }
  }
  without_families(buffers);
  without_families(images);
  VkDependencyInfo real = *info;
  real.pBufferMemoryBarriers = buffers.data();
  real.pImageMemoryBarriers = images.data();
  device.next.vkCmdPipelineBarrier2(commands, &real);
}

// Stages and accesses of Vulkan 1.0 have the same bits in synchronization2.
VKAPI_ATTR void VKAPI_CALL barrier1(VkCommandBuffer commands, VkPipelineStageFlags from,
                                    VkPipelineStageFlags to, VkDependencyFlags flags, uint32_t memory_count,
                                    const VkMemoryBarrier* memory, uint32_t buffer_count,
                                    const VkBufferMemoryBarrier* buffer, uint32_t image_count,
                                    const VkImageMemoryBarrier* image) {
  Device& device = device_of(commands);
  std::vector<VkBufferMemoryBarrier> buffers(buffer, buffer + buffer_count);
  std::vector<VkImageMemoryBarrier> images(image, image + image_count);
  {
    const std::scoped_lock lock(device.mutex);
    Recording& recording = device.recordings.at(commands);
    for (const VkMemoryBarrier& one : std::span(memory, memory_count))
      add_barrier(recording, {from, one.srcAccessMask, to, one.dstAccessMask, {}});
    for (const VkBufferMemoryBarrier& one : buffers) {
      const auto range = device.late_range(one.buffer, one.offset, one.size);
      if (range) add_barrier(recording, {from, one.srcAccessMask, to, one.dstAccessMask, range});
    }
  }
  without_families(buffers);
  without_families(images);
  device.next.vkCmdPipelineBarrier(commands, from, to, flags, memory_count, memory, buffer_count,
                                   buffers.data(), image_count, images.data());
}

// --- writes

void add_write(Device& device, Recording& recording, VkBuffer buffer, uint64_t offset, uint64_t bytes,
               VkPipelineStageFlags2 stages, VkAccessFlags2 access) {
  const auto range = device.late_range(buffer, offset, bytes);
  if (range) recording.add_event(DeviceWrite{*range, stages, access});
}

// What queues that only copy could do, and those of this layer don't.
void refuse_on_engines(VkCommandBuffer commands, const char* what) {
  Device& device = device_of(commands);
  const std::scoped_lock lock(device.mutex);
  if (!device.recordings.at(commands).only_copies) return;
  device.complain("pretend-copy-queue", std::string(what) + " isn't played on queues that only copy");
}

void add_transfer(VkCommandBuffer commands, VkBuffer buffer, uint64_t offset, uint64_t bytes,
                  VkPipelineStageFlags2 stage = VK_PIPELINE_STAGE_2_COPY_BIT) {
  Device& device = device_of(commands);
  const std::scoped_lock lock(device.mutex);
  add_write(device, device.recordings.at(commands), buffer, offset, bytes, stage,
            VK_ACCESS_2_TRANSFER_WRITE_BIT);
}

void add_copy(VkCommandBuffer commands, const CopyStep& step) {
  Device& device = device_of(commands);
  const std::scoped_lock lock(device.mutex);
  device.recordings.at(commands).add_copy(step);
}

VKAPI_ATTR void VKAPI_CALL copy_buffer(VkCommandBuffer commands, VkBuffer from, VkBuffer to, uint32_t count,
                                       const VkBufferCopy* regions) {
  for (const VkBufferCopy& one : std::span(regions, count)) {
    add_copy(commands, BufferCopy{from, to, one});
    add_transfer(commands, to, one.dstOffset, one.size);
  }
  device_of(commands).next.vkCmdCopyBuffer(commands, from, to, count, regions);
}

VKAPI_ATTR void VKAPI_CALL copy_buffer2(VkCommandBuffer commands, const VkCopyBufferInfo2* info) {
  for (const VkBufferCopy2& one : std::span(info->pRegions, info->regionCount)) {
    add_copy(commands,
             BufferCopy{info->srcBuffer, info->dstBuffer, {one.srcOffset, one.dstOffset, one.size}});
    add_transfer(commands, info->dstBuffer, one.dstOffset, one.size);
  }
  device_of(commands).next.vkCmdCopyBuffer2(commands, info);
}

VKAPI_ATTR void VKAPI_CALL fill_buffer(VkCommandBuffer commands, VkBuffer to, VkDeviceSize offset,
                                       VkDeviceSize bytes, uint32_t word) {
  Device& device = device_of(commands);
  {
    const std::scoped_lock lock(device.mutex);
    const uint64_t room = device.buffers.at(to).bytes - offset;
    device.recordings.at(commands).add_copy(BufferFill{to, offset, std::min(bytes, room) / 4 * 4, word});
  }
  add_transfer(commands, to, offset, bytes, VK_PIPELINE_STAGE_2_CLEAR_BIT);
  device_of(commands).next.vkCmdFillBuffer(commands, to, offset, bytes, word);
}

VKAPI_ATTR void VKAPI_CALL update_buffer(VkCommandBuffer commands, VkBuffer to, VkDeviceSize offset,
                                         VkDeviceSize bytes, const void* data) {
  refuse_on_engines(commands, "vkCmdUpdateBuffer");
  // Its stage is that of clears or of copies, by the reading of the specification; both wait for it.
  add_transfer(commands, to, offset, bytes, VK_PIPELINE_STAGE_2_CLEAR_BIT | VK_PIPELINE_STAGE_2_COPY_BIT);
  device_of(commands).next.vkCmdUpdateBuffer(commands, to, offset, bytes, data);
}

VKAPI_ATTR void VKAPI_CALL copy_image(VkCommandBuffer commands, VkImage from, VkImageLayout layout,
                                      VkBuffer to, uint32_t count, const VkBufferImageCopy* regions) {
  refuse_on_engines(commands, "vkCmdCopyImageToBuffer");
  add_transfer(commands, to, 0, VK_WHOLE_SIZE);
  device_of(commands).next.vkCmdCopyImageToBuffer(commands, from, layout, to, count, regions);
}

VKAPI_ATTR void VKAPI_CALL copy_image2(VkCommandBuffer commands, const VkCopyImageToBufferInfo2* info) {
  refuse_on_engines(commands, "vkCmdCopyImageToBuffer2");
  add_transfer(commands, info->dstBuffer, 0, VK_WHOLE_SIZE);
  device_of(commands).next.vkCmdCopyImageToBuffer2(commands, info);
}

VKAPI_ATTR void VKAPI_CALL copy_results(VkCommandBuffer commands, VkQueryPool pool, uint32_t first,
                                        uint32_t count, VkBuffer to, VkDeviceSize offset, VkDeviceSize stride,
                                        VkQueryResultFlags flags) {
  add_transfer(commands, to, offset, VK_WHOLE_SIZE);
  device_of(commands).next.vkCmdCopyQueryPoolResults(commands, pool, first, count, to, offset, stride, flags);
}

// --- dispatches, which may write whatever they were given: bound buffers, and those whose addresses stand in
// the push constants

VKAPI_ATTR void VKAPI_CALL bind_sets(VkCommandBuffer commands, VkPipelineBindPoint point,
                                     VkPipelineLayout layout, uint32_t first, uint32_t count,
                                     const VkDescriptorSet* sets, uint32_t offset_count,
                                     const uint32_t* offsets) {
  Device& device = device_of(commands);
  if (point == VK_PIPELINE_BIND_POINT_COMPUTE) {
    const std::scoped_lock lock(device.mutex);
    for (uint32_t i = 0; i < count; ++i) device.recordings.at(commands).sets[first + i] = sets[i];
  }
  device.next.vkCmdBindDescriptorSets(commands, point, layout, first, count, sets, offset_count, offsets);
}

VKAPI_ATTR void VKAPI_CALL push(VkCommandBuffer commands, VkPipelineLayout layout, VkShaderStageFlags stages,
                                uint32_t offset, uint32_t bytes, const void* values) {
  Device& device = device_of(commands);
  if ((stages & VK_SHADER_STAGE_COMPUTE_BIT) != 0) {
    const std::scoped_lock lock(device.mutex);
    std::vector<std::byte>& constants = device.recordings.at(commands).push_constants;
    // What lies behind was pushed for another shader, if anything was.
    constants.resize(offset + bytes);
    std::memcpy(constants.data() + offset, values, bytes);
  }
  device.next.vkCmdPushConstants(commands, layout, stages, offset, bytes, values);
}

void add_shader_write(Device& device, Recording& recording, VkBuffer buffer, uint64_t offset,
                      uint64_t bytes) {
  add_write(device, recording, buffer, offset, bytes, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
            VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT);
}

void add_dispatch(VkCommandBuffer commands) {
  Device& device = device_of(commands);
  const std::scoped_lock lock(device.mutex);
  Recording& recording = device.recordings.at(commands);
  for (const auto& [number, set] : recording.sets) {
    const auto bindings = device.descriptors.find(set);
    if (bindings == device.descriptors.end()) continue;
    for (const auto& [where, bound] : bindings->second)
      add_shader_write(device, recording, bound.buffer, bound.offset, bound.bytes);
  }
  for (size_t at = 0; at + sizeof(VkDeviceAddress) <= recording.push_constants.size();
       at += sizeof(VkDeviceAddress)) {
    VkDeviceAddress address = 0;
    std::memcpy(&address, recording.push_constants.data() + at, sizeof address);
    if (address == 0) continue;
    for (const auto& [buffer, record] : device.buffers) {
      if (record.two_copies && record.address <= address && address < record.address + record.bytes)
        add_shader_write(device, recording, buffer, 0, VK_WHOLE_SIZE);
    }
  }
}

void check_groups(VkCommandBuffer commands, std::array<uint32_t, 3> groups) {
  const Device& device = device_of(commands);
  const auto& most = device.physical->limits.maxComputeWorkGroupCount;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i] <= most[i]) continue;
    device.complain("pretend-dispatch", std::to_string(groups[i]) +
                                            " workgroups are dispatched in dimension " + std::to_string(i) +
                                            ", " + std::to_string(most[i]) + " are the most");
  }
}

VKAPI_ATTR void VKAPI_CALL dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
  check_groups(commands, {x, y, z});
  add_dispatch(commands);
  device_of(commands).next.vkCmdDispatch(commands, x, y, z);
}

VKAPI_ATTR void VKAPI_CALL dispatch_base(VkCommandBuffer commands, uint32_t from_x, uint32_t from_y,
                                         uint32_t from_z, uint32_t x, uint32_t y, uint32_t z) {
  check_groups(commands, {from_x + x, from_y + y, from_z + z});
  add_dispatch(commands);
  device_of(commands).next.vkCmdDispatchBase(commands, from_x, from_y, from_z, x, y, z);
}

VKAPI_ATTR void VKAPI_CALL dispatch_indirect(VkCommandBuffer commands, VkBuffer buffer, VkDeviceSize offset) {
  add_dispatch(commands);
  device_of(commands).next.vkCmdDispatchIndirect(commands, buffer, offset);
}

}  // namespace

std::vector<Hook> command_hooks() {
  return {PRETEND_HOOK(vkCreateCommandPool, create_pool),
          PRETEND_HOOK(vkDestroyCommandPool, destroy_pool),
          PRETEND_HOOK(vkAllocateCommandBuffers, allocate_commands),
          PRETEND_HOOK(vkFreeCommandBuffers, free_commands),
          PRETEND_HOOK(vkBeginCommandBuffer, begin),
          PRETEND_HOOK(vkCmdExecuteCommands, execute),
          PRETEND_HOOK(vkCmdPipelineBarrier, barrier1),
          PRETEND_HOOK(vkCmdPipelineBarrier2, barrier2),
          PRETEND_HOOK(vkCmdPipelineBarrier2KHR, barrier2),
          PRETEND_HOOK(vkCmdCopyBuffer, copy_buffer),
          PRETEND_HOOK(vkCmdCopyBuffer2, copy_buffer2),
          PRETEND_HOOK(vkCmdCopyBuffer2KHR, copy_buffer2),
          PRETEND_HOOK(vkCmdFillBuffer, fill_buffer),
          PRETEND_HOOK(vkCmdUpdateBuffer, update_buffer),
          PRETEND_HOOK(vkCmdCopyImageToBuffer, copy_image),
          PRETEND_HOOK(vkCmdCopyImageToBuffer2, copy_image2),
          PRETEND_HOOK(vkCmdCopyImageToBuffer2KHR, copy_image2),
          PRETEND_HOOK(vkCmdCopyQueryPoolResults, copy_results),
          PRETEND_HOOK(vkCmdBindDescriptorSets, bind_sets),
          PRETEND_HOOK(vkCmdPushConstants, push),
          PRETEND_HOOK(vkCmdDispatch, dispatch),
          PRETEND_HOOK(vkCmdDispatchBase, dispatch_base),
          PRETEND_HOOK(vkCmdDispatchBaseKHR, dispatch_base),
          PRETEND_HOOK(vkCmdDispatchIndirect, dispatch_indirect)};
}

}  // namespace vitrine::pretend
