// Buffers and images: where they lie, and which memory types they may lie in.
#include "tests/pretend/layer/state.h"

namespace vitrine::pretend {
namespace {

// All families that are told are the driver's one, which needs no sharing with itself.
template <typename Info>
Info for_one_family(const Info& info) {
  Info real = info;
  real.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  real.queueFamilyIndexCount = 0;
  real.pQueueFamilyIndices = nullptr;
  return real;
}

VKAPI_ATTR VkResult VKAPI_CALL create_buffer(VkDevice handle, const VkBufferCreateInfo* info,
                                             const VkAllocationCallbacks* callbacks, VkBuffer* buffer) {
  Device& device = device_of(handle);
  const VkBufferCreateInfo real = for_one_family(*info);
  const VkResult result = device.next.vkCreateBuffer(handle, &real, callbacks, buffer);
  if (result != VK_SUCCESS) return result;
  const std::scoped_lock lock(device.mutex);
  device.buffers[*buffer] = {.bytes = info->size};
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL destroy_buffer(VkDevice handle, VkBuffer buffer,
                                          const VkAllocationCallbacks* callbacks) {
  Device& device = device_of(handle);
  {
    const std::scoped_lock lock(device.mutex);
    device.buffers.erase(buffer);
  }
  device.next.vkDestroyBuffer(handle, buffer, callbacks);
}

VKAPI_ATTR VkResult VKAPI_CALL create_image(VkDevice handle, const VkImageCreateInfo* info,
                                            const VkAllocationCallbacks* callbacks, VkImage* image) {
  const VkImageCreateInfo real = for_one_family(*info);
  return device_of(handle).next.vkCreateImage(handle, &real, callbacks, image);
}

VKAPI_ATTR void VKAPI_CALL buffer_needs(VkDevice handle, VkBuffer buffer, VkMemoryRequirements* needs) {
  const Device& device = device_of(handle);
  device.next.vkGetBufferMemoryRequirements(handle, buffer, needs);
  needs->memoryTypeBits = device.physical->told_types(needs->memoryTypeBits, true);
}

VKAPI_ATTR void VKAPI_CALL buffer_needs2(VkDevice handle, const VkBufferMemoryRequirementsInfo2* info,
                                         VkMemoryRequirements2* needs) {
  const Device& device = device_of(handle);
  device.next.vkGetBufferMemoryRequirements2(handle, info, needs);
  uint32_t& types = needs->memoryRequirements.memoryTypeBits;
  types = device.physical->told_types(types, true);
}

VKAPI_ATTR void VKAPI_CALL needs_of_such_buffer(VkDevice handle, const VkDeviceBufferMemoryRequirements* info,
                                                VkMemoryRequirements2* needs) {
  const Device& device = device_of(handle);
  const VkBufferCreateInfo buffer = for_one_family(*info->pCreateInfo);
  VkDeviceBufferMemoryRequirements real = *info;
  real.pCreateInfo = &buffer;
  device.next.vkGetDeviceBufferMemoryRequirements(handle, &real, needs);
  uint32_t& types = needs->memoryRequirements.memoryTypeBits;
  types = device.physical->told_types(types, true);
}

VKAPI_ATTR void VKAPI_CALL image_needs(VkDevice handle, VkImage image, VkMemoryRequirements* needs) {
  const Device& device = device_of(handle);
  device.next.vkGetImageMemoryRequirements(handle, image, needs);
  needs->memoryTypeBits = device.physical->told_types(needs->memoryTypeBits, false);
}

VKAPI_ATTR void VKAPI_CALL image_needs2(VkDevice handle, const VkImageMemoryRequirementsInfo2* info,
                                        VkMemoryRequirements2* needs) {
  const Device& device = device_of(handle);
  device.next.vkGetImageMemoryRequirements2(handle, info, needs);
  uint32_t& types = needs->memoryRequirements.memoryTypeBits;
  types = device.physical->told_types(types, false);
}

VKAPI_ATTR void VKAPI_CALL needs_of_such_image(VkDevice handle, const VkDeviceImageMemoryRequirements* info,
                                               VkMemoryRequirements2* needs) {
  const Device& device = device_of(handle);
  const VkImageCreateInfo image = for_one_family(*info->pCreateInfo);
  VkDeviceImageMemoryRequirements real = *info;
  real.pCreateInfo = &image;
  device.next.vkGetDeviceImageMemoryRequirements(handle, &real, needs);
  uint32_t& types = needs->memoryRequirements.memoryTypeBits;
  types = device.physical->told_types(types, false);
}

void bound(Device& device, VkBuffer buffer, VkDeviceMemory memory, uint64_t offset) {
  VkMemoryRequirements needs{};
  buffer_needs(device.handle, buffer, &needs);
  const std::scoped_lock lock(device.mutex);
  const uint32_t type = device.memory.at(memory).type;
  if ((needs.memoryTypeBits >> type & 1) == 0) {
    device.complain("pretend-memory-type", "a buffer is bound to memory of type " + std::to_string(type) +
                                               ", which isn't among those that it may lie in");
  }
  BufferRecord& record = device.buffers.at(buffer);
  record.memory = memory;
  record.offset = offset;
  record.two_copies = device.profile().memory_types[type].keeps_two_copies();
}

VKAPI_ATTR VkResult VKAPI_CALL bind_buffer(VkDevice handle, VkBuffer buffer, VkDeviceMemory memory,
                                           VkDeviceSize offset) {
  Device& device = device_of(handle);
  const VkResult result = device.next.vkBindBufferMemory(handle, buffer, memory, offset);
  if (result == VK_SUCCESS) bound(device, buffer, memory, offset);
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL bind_buffer2(VkDevice handle, uint32_t count,
                                            const VkBindBufferMemoryInfo* infos) {
  Device& device = device_of(handle);
  const VkResult result = device.next.vkBindBufferMemory2(handle, count, infos);
  if (result != VK_SUCCESS) return result;
  for (uint32_t i = 0; i < count; ++i) bound(device, infos[i].buffer, infos[i].memory, infos[i].memoryOffset);
  return VK_SUCCESS;
}

VKAPI_ATTR VkDeviceAddress VKAPI_CALL address_of(VkDevice handle, const VkBufferDeviceAddressInfo* info) {
  Device& device = device_of(handle);
  const VkDeviceAddress address = device.next.vkGetBufferDeviceAddress(handle, info);
  const std::scoped_lock lock(device.mutex);
  device.buffers.at(info->buffer).address = address;
  return address;
}

}  // namespace

std::vector<Hook> buffer_hooks() {
  return {PRETEND_HOOK(vkCreateBuffer, create_buffer),
          PRETEND_HOOK(vkDestroyBuffer, destroy_buffer),
          PRETEND_HOOK(vkCreateImage, create_image),
          PRETEND_HOOK(vkGetBufferMemoryRequirements, buffer_needs),
          PRETEND_HOOK(vkGetBufferMemoryRequirements2, buffer_needs2),
          PRETEND_HOOK(vkGetBufferMemoryRequirements2KHR, buffer_needs2),
          PRETEND_HOOK(vkGetDeviceBufferMemoryRequirements, needs_of_such_buffer),
          PRETEND_HOOK(vkGetDeviceBufferMemoryRequirementsKHR, needs_of_such_buffer),
          PRETEND_HOOK(vkGetImageMemoryRequirements, image_needs),
          PRETEND_HOOK(vkGetImageMemoryRequirements2, image_needs2),
          PRETEND_HOOK(vkGetImageMemoryRequirements2KHR, image_needs2),
          PRETEND_HOOK(vkGetDeviceImageMemoryRequirements, needs_of_such_image),
          PRETEND_HOOK(vkGetDeviceImageMemoryRequirementsKHR, needs_of_such_image),
          PRETEND_HOOK(vkBindBufferMemory, bind_buffer),
          PRETEND_HOOK(vkBindBufferMemory2, bind_buffer2),
          PRETEND_HOOK(vkBindBufferMemory2KHR, bind_buffer2),
          PRETEND_HOOK(vkGetBufferDeviceAddress, address_of),
          PRETEND_HOOK(vkGetBufferDeviceAddressKHR, address_of),
          PRETEND_HOOK(vkGetBufferDeviceAddressEXT, address_of)};
}

}  // namespace vitrine::pretend
