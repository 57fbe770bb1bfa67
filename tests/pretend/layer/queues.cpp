// Queues: however many are told, one of the driver's stands behind them.
#include "tests/pretend/layer/state.h"

namespace vitrine::pretend {
namespace {

VKAPI_ATTR void VKAPI_CALL get_queue(VkDevice handle, uint32_t family, uint32_t number, VkQueue* queue) {
  Device& device = device_of(handle);
  const std::scoped_lock lock(device.mutex);
  std::unique_ptr<Queue>& known = device.queues[{family, number}];
  if (!known) {
    known = std::make_unique<Queue>();
    known->device = &device;
    device.next.vkGetDeviceQueue(handle, device.physical->real_family, 0, &known->real);
    // Of the driver's queue, too: the loader asks it for its table when it passes labels on.
    device.set_loader_data(handle, known->real);
    device.set_loader_data(handle, known.get());
  }
  *queue = reinterpret_cast<VkQueue>(known.get());
}

VKAPI_ATTR void VKAPI_CALL get_queue2(VkDevice handle, const VkDeviceQueueInfo2* info, VkQueue* queue) {
  get_queue(handle, info->queueFamilyIndex, info->queueIndex, queue);
}

void run(Device& device, VkCommandBuffer commands) {
  const std::scoped_lock lock(device.mutex);
  for (const Event& event : device.recordings.at(commands).events) device.host_view.apply(event);
}

VKAPI_ATTR VkResult VKAPI_CALL submit2(VkQueue handle, uint32_t count, const VkSubmitInfo2* submissions,
                                       VkFence fence) {
  const Queue& queue = queue_of(handle);
  const std::scoped_lock lock(queue.device->queue_mutex);
  for (const VkSubmitInfo2& one : std::span(submissions, count)) {
    for (uint32_t i = 0; i < one.commandBufferInfoCount; ++i)
      run(*queue.device, one.pCommandBufferInfos[i].commandBuffer);
  }
  return queue.device->next.vkQueueSubmit2(queue.real, count, submissions, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue handle, uint32_t count, const VkSubmitInfo* submissions,
                                      VkFence fence) {
  const Queue& queue = queue_of(handle);
  const std::scoped_lock lock(queue.device->queue_mutex);
  for (const VkSubmitInfo& one : std::span(submissions, count)) {
    for (uint32_t i = 0; i < one.commandBufferCount; ++i) run(*queue.device, one.pCommandBuffers[i]);
  }
  return queue.device->next.vkQueueSubmit(queue.real, count, submissions, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL wait(VkQueue handle) {
  const Queue& queue = queue_of(handle);
  const std::scoped_lock lock(queue.device->queue_mutex);
  return queue.device->next.vkQueueWaitIdle(queue.real);
}

VKAPI_ATTR VkResult VKAPI_CALL bind_sparse(VkQueue handle, uint32_t count, const VkBindSparseInfo* infos,
                                           VkFence fence) {
  const Queue& queue = queue_of(handle);
  const std::scoped_lock lock(queue.device->queue_mutex);
  return queue.device->next.vkQueueBindSparse(queue.real, count, infos, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL present(VkQueue handle, const VkPresentInfoKHR* info) {
  const Queue& queue = queue_of(handle);
  const std::scoped_lock lock(queue.device->queue_mutex);
  return queue.device->next.vkQueuePresentKHR(queue.real, info);
}

VKAPI_ATTR void VKAPI_CALL begin_label(VkQueue handle, const VkDebugUtilsLabelEXT* label) {
  const Queue& queue = queue_of(handle);
  queue.device->next.vkQueueBeginDebugUtilsLabelEXT(queue.real, label);
}
VKAPI_ATTR void VKAPI_CALL end_label(VkQueue handle) {
  const Queue& queue = queue_of(handle);
  queue.device->next.vkQueueEndDebugUtilsLabelEXT(queue.real);
}
VKAPI_ATTR void VKAPI_CALL insert_label(VkQueue handle, const VkDebugUtilsLabelEXT* label) {
  const Queue& queue = queue_of(handle);
  queue.device->next.vkQueueInsertDebugUtilsLabelEXT(queue.real, label);
}

// Names are given to what lies below, where our queues are unknown.
template <typename Info>
Info of_real_queue(const Info& info) {
  Info real = info;
  if (info.objectType == VK_OBJECT_TYPE_QUEUE) {
    const auto queue = reinterpret_cast<VkQueue>(static_cast<uintptr_t>(info.objectHandle));
    real.objectHandle = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(queue_of(queue).real));
  }
  return real;
}
VKAPI_ATTR VkResult VKAPI_CALL set_name(VkDevice handle, const VkDebugUtilsObjectNameInfoEXT* info) {
  const VkDebugUtilsObjectNameInfoEXT real = of_real_queue(*info);
  return device_of(handle).next.vkSetDebugUtilsObjectNameEXT(handle, &real);
}
VKAPI_ATTR VkResult VKAPI_CALL set_tag(VkDevice handle, const VkDebugUtilsObjectTagInfoEXT* info) {
  const VkDebugUtilsObjectTagInfoEXT real = of_real_queue(*info);
  return device_of(handle).next.vkSetDebugUtilsObjectTagEXT(handle, &real);
}

}  // namespace

std::vector<Hook> queue_hooks() {
  return {PRETEND_HOOK(vkGetDeviceQueue, get_queue),
          PRETEND_HOOK(vkGetDeviceQueue2, get_queue2),
          PRETEND_HOOK(vkQueueSubmit, submit),
          PRETEND_HOOK(vkQueueSubmit2, submit2),
          PRETEND_HOOK(vkQueueSubmit2KHR, submit2),
          PRETEND_HOOK(vkQueueWaitIdle, wait),
          PRETEND_HOOK(vkQueueBindSparse, bind_sparse),
          PRETEND_HOOK(vkQueuePresentKHR, present),
          PRETEND_HOOK(vkQueueBeginDebugUtilsLabelEXT, begin_label),
          PRETEND_HOOK(vkQueueEndDebugUtilsLabelEXT, end_label),
          PRETEND_HOOK(vkQueueInsertDebugUtilsLabelEXT, insert_label),
          PRETEND_HOOK(vkSetDebugUtilsObjectNameEXT, set_name),
          PRETEND_HOOK(vkSetDebugUtilsObjectTagEXT, set_tag)};
}

}  // namespace vitrine::pretend
