// Which buffers a descriptor set binds: what a dispatch may write to.
#include "tests/pretend/layer/state.h"

namespace vitrine::pretend {
namespace {

bool binds_storage(VkDescriptorType type) {
  return type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER || type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC;
}

// The validation layer tells these as well; a program that runs without it should fail, too.
void check_limits(const Device& device, const VkDescriptorBufferInfo& info, uint64_t bytes) {
  const VkPhysicalDeviceLimits& limits = device.physical->limits;
  if (info.offset % limits.minStorageBufferOffsetAlignment != 0) {
    device.complain("pretend-descriptor", "a storage buffer is bound from byte " +
                                              std::to_string(info.offset) + ", no multiple of " +
                                              std::to_string(limits.minStorageBufferOffsetAlignment));
  }
  if (bytes > limits.maxStorageBufferRange) {
    device.complain("pretend-descriptor", std::to_string(bytes) + " bytes are bound as a storage buffer, " +
                                              std::to_string(limits.maxStorageBufferRange) + " are the most");
  }
}

VKAPI_ATTR VkResult VKAPI_CALL allocate_sets(VkDevice handle, const VkDescriptorSetAllocateInfo* info,
                                             VkDescriptorSet* sets) {
  Device& device = device_of(handle);
  const VkResult result = device.next.vkAllocateDescriptorSets(handle, info, sets);
  if (result != VK_SUCCESS) return result;
  // A handle may be an old one's again.
  const std::scoped_lock lock(device.mutex);
  for (uint32_t i = 0; i < info->descriptorSetCount; ++i) device.descriptors[sets[i]].clear();
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL update_sets(VkDevice handle, uint32_t write_count,
                                       const VkWriteDescriptorSet* writes, uint32_t copy_count,
                                       const VkCopyDescriptorSet* copies) {
  Device& device = device_of(handle);
  {
    const std::scoped_lock lock(device.mutex);
    for (const VkWriteDescriptorSet& write : std::span(writes, write_count)) {
      if (!binds_storage(write.descriptorType)) continue;
      DescriptorBindings& bindings = device.descriptors[write.dstSet];
      for (uint32_t i = 0; i < write.descriptorCount; ++i) {
        const VkDescriptorBufferInfo& info = write.pBufferInfo[i];
        const auto buffer = device.buffers.find(info.buffer);
        uint64_t bytes = info.range;
        if (bytes == VK_WHOLE_SIZE)
          bytes = buffer == device.buffers.end() ? 0 : buffer->second.bytes - info.offset;
        check_limits(device, info, bytes);
        bindings[{write.dstBinding, write.dstArrayElement + i}] = {info.buffer, info.offset, bytes};
      }
    }
    for (const VkCopyDescriptorSet& copy : std::span(copies, copy_count)) {
      const DescriptorBindings from = device.descriptors[copy.srcSet];
      for (uint32_t i = 0; i < copy.descriptorCount; ++i) {
        const auto found = from.find({copy.srcBinding, copy.srcArrayElement + i});
        if (found == from.end()) continue;
        device.descriptors[copy.dstSet][{copy.dstBinding, copy.dstArrayElement + i}] = found->second;
      }
    }
  }
  device.next.vkUpdateDescriptorSets(handle, write_count, writes, copy_count, copies);
}

}  // namespace

std::vector<Hook> descriptor_hooks() {
  return {PRETEND_HOOK(vkAllocateDescriptorSets, allocate_sets),
          PRETEND_HOOK(vkUpdateDescriptorSets, update_sets)};
}

}  // namespace vitrine::pretend
