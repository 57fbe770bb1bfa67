// Timestamps of queues that only copy, which no driver has written: what was recorded says whose a query is.
#include <cstring>

#include "tests/pretend/layer/state.h"

namespace vitrine::pretend {
namespace {

VKAPI_ATTR void VKAPI_CALL write_timestamp(VkCommandBuffer commands, VkPipelineStageFlags2 stage,
                                           VkQueryPool pool, uint32_t query) {
  Device& device = device_of(commands);
  {
    const std::scoped_lock lock(device.mutex);
    device.recordings.at(commands).add_copy(TimeStamp{pool, query});
  }
  device.next.vkCmdWriteTimestamp2(commands, stage, pool, query);
}

VKAPI_ATTR void VKAPI_CALL reset(VkDevice handle, VkQueryPool pool, uint32_t first, uint32_t count) {
  Device& device = device_of(handle);
  {
    const std::scoped_lock lock(device.mutex);
    device.stamps.erase(device.stamps.lower_bound({pool, first}),
                        device.stamps.lower_bound({pool, first + count}));
  }
  device.next.vkResetQueryPool(handle, pool, first, count);
}

VKAPI_ATTR VkResult VKAPI_CALL get_results(VkDevice handle, VkQueryPool pool, uint32_t first, uint32_t count,
                                           size_t bytes, void* data, VkDeviceSize stride,
                                           VkQueryResultFlags flags) {
  Device& device = device_of(handle);
  {
    const std::scoped_lock lock(device.mutex);
    const auto begin = device.stamps.lower_bound({pool, first});
    const auto end = device.stamps.lower_bound({pool, first + count});
    if (begin != end) {
      // All or none are such a queue's; and what was waited for was written.
      if (std::distance(begin, end) != count || (flags & VK_QUERY_RESULT_64_BIT) == 0) return VK_NOT_READY;
      for (auto at = begin; at != end; ++at) {
        std::memcpy(static_cast<std::byte*>(data) + (at->first.second - first) * stride, &at->second,
                    sizeof at->second);
      }
      return VK_SUCCESS;
    }
  }
  return device.next.vkGetQueryPoolResults(handle, pool, first, count, bytes, data, stride, flags);
}

VKAPI_ATTR void VKAPI_CALL destroy_pool(VkDevice handle, VkQueryPool pool,
                                        const VkAllocationCallbacks* callbacks) {
  Device& device = device_of(handle);
  {
    const std::scoped_lock lock(device.mutex);
    std::erase_if(device.stamps, [&](const auto& one) { return one.first.first == pool; });
  }
  device.next.vkDestroyQueryPool(handle, pool, callbacks);
}

}  // namespace

std::vector<Hook> query_hooks() {
  return {PRETEND_HOOK(vkCmdWriteTimestamp2, write_timestamp),
          PRETEND_HOOK(vkCmdWriteTimestamp2KHR, write_timestamp),
          PRETEND_HOOK(vkResetQueryPool, reset),
          PRETEND_HOOK(vkResetQueryPoolEXT, reset),
          PRETEND_HOOK(vkGetQueryPoolResults, get_results),
          PRETEND_HOOK(vkDestroyQueryPool, destroy_pool)};
}

}  // namespace vitrine::pretend
