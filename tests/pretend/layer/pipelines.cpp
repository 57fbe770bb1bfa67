// Pipelines pass through if dispatches in parts are right with them. Their layouts have limits, and their
// caches a header that tells whose they are.
#include <algorithm>
#include <cstring>

#include "tests/pretend/layer/state.h"

namespace vitrine::pretend {
namespace {

VKAPI_ATTR VkResult VKAPI_CALL create_layout(VkDevice handle, const VkPipelineLayoutCreateInfo* info,
                                             const VkAllocationCallbacks* callbacks,
                                             VkPipelineLayout* layout) {
  const Device& device = device_of(handle);
  const VkPhysicalDeviceLimits& limits = device.physical->limits;
  if (info->setLayoutCount > limits.maxBoundDescriptorSets) {
    device.complain("pretend-pipeline-layout",
                    "a pipeline takes " + std::to_string(info->setLayoutCount) + " descriptor sets, " +
                        std::to_string(limits.maxBoundDescriptorSets) + " are the most");
  }
  for (const VkPushConstantRange& range :
       std::span(info->pPushConstantRanges, info->pushConstantRangeCount)) {
    if (range.offset + range.size <= limits.maxPushConstantsSize) continue;
    device.complain("pretend-pipeline-layout",
                    "a pipeline takes " + std::to_string(range.offset + range.size) +
                        " bytes of push constants, " + std::to_string(limits.maxPushConstantsSize) +
                        " are the most");
  }
  return device.next.vkCreatePipelineLayout(handle, info, callbacks, layout);
}

// A driver is known (NVIDIA's 580.159.04) that takes a pipeline with this bit for one of the same code
// without.
VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice handle, VkPipelineCache cache, uint32_t count,
                                                const VkComputePipelineCreateInfo* infos,
                                                const VkAllocationCallbacks* callbacks,
                                                VkPipeline* pipelines) {
  const Device& device = device_of(handle);
  for (const VkComputePipelineCreateInfo& info : std::span(infos, count)) {
    if ((info.flags & VK_PIPELINE_CREATE_DISPATCH_BASE_BIT) != 0) continue;
    device.complain("pretend-pipeline-in-parts",
                    "a compute pipeline is made without VK_PIPELINE_CREATE_DISPATCH_BASE_BIT");
  }
  return device.next.vkCreateComputePipelines(handle, cache, count, infos, callbacks, pipelines);
}

void set_owner(VkPipelineCacheHeaderVersionOne& header, uint32_t vendor, uint32_t device,
               const uint8_t* uuid) {
  header.vendorID = vendor;
  header.deviceID = device;
  std::copy_n(uuid, VK_UUID_SIZE, header.pipelineCacheUUID);
}

VkPipelineCacheHeaderVersionOne told_header(const PhysicalDevice& device) {
  const auto& identity = device.profile().identity;
  VkPipelineCacheHeaderVersionOne header{sizeof header, VK_PIPELINE_CACHE_HEADER_VERSION_ONE, 0, 0, {}};
  set_owner(header, identity ? identity->vendor_id : device.real.vendorID,
            identity ? identity->device_id : device.real.deviceID, device.uuid.data());
  return header;
}

VKAPI_ATTR VkResult VKAPI_CALL create_cache(VkDevice handle, const VkPipelineCacheCreateInfo* info,
                                            const VkAllocationCallbacks* callbacks, VkPipelineCache* cache) {
  const Device& device = device_of(handle);
  const auto* data = static_cast<const std::byte*>(info->pInitialData);
  std::vector<std::byte> copy(data, data + info->initialDataSize);
  VkPipelineCacheCreateInfo real = *info;
  VkPipelineCacheHeaderVersionOne header = told_header(*device.physical);
  // What isn't this device's stays as it is: the driver turns it away.
  if (copy.size() >= sizeof header && std::memcmp(copy.data(), &header, sizeof header) == 0) {
    set_owner(header, device.physical->real.vendorID, device.physical->real.deviceID,
              device.physical->real.pipelineCacheUUID);
    std::memcpy(copy.data(), &header, sizeof header);
    real.pInitialData = copy.data();
  }
  return device.next.vkCreatePipelineCache(handle, &real, callbacks, cache);
}

VKAPI_ATTR VkResult VKAPI_CALL get_cache(VkDevice handle, VkPipelineCache cache, size_t* bytes, void* data) {
  const Device& device = device_of(handle);
  const VkResult result = device.next.vkGetPipelineCacheData(handle, cache, bytes, data);
  const VkPipelineCacheHeaderVersionOne header = told_header(*device.physical);
  if (data != nullptr && *bytes >= sizeof header) std::memcpy(data, &header, sizeof header);
  return result;
}

}  // namespace

std::vector<Hook> pipeline_hooks() {
  return {PRETEND_HOOK(vkCreatePipelineLayout, create_layout),
          PRETEND_HOOK(vkCreateComputePipelines, create_pipelines),
          PRETEND_HOOK(vkCreatePipelineCache, create_cache), PRETEND_HOOK(vkGetPipelineCacheData, get_cache)};
}

}  // namespace vitrine::pretend
