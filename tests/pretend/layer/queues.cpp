// Queues: however many are told, one of the driver's stands behind those that compute, and a thread of the
// layer behind each that only copies.
#include <algorithm>
#include <span>

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
    if (device.only_copies(family)) known->engine = std::make_unique<CopyEngine>(device);
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

VkResult submit_to_engine(const Queue& queue, std::span<const VkSubmitInfo2> submissions, VkFence fence) {
  Device& device = *queue.device;
  const auto values_of = [&](uint32_t count, const VkSemaphoreSubmitInfo* infos) {
    std::vector<std::pair<VkSemaphore, uint64_t>> values;
    for (const VkSemaphoreSubmitInfo& one : std::span(infos, count)) {
      if (one.value == 0)
        device.complain("pretend-copy-queue", "queues that only copy play timeline semaphores and no others");
      values.emplace_back(one.semaphore, one.value);
    }
    return values;
  };
  for (const VkSubmitInfo2& one : submissions) {
    CopyEngine::Work work{values_of(one.waitSemaphoreInfoCount, one.pWaitSemaphoreInfos),
                          values_of(one.signalSemaphoreInfoCount, one.pSignalSemaphoreInfos),
                          {}};
    {
      const std::scoped_lock lock(device.mutex);
      for (uint32_t i = 0; i < one.commandBufferInfoCount; ++i) {
        const Recording& recording = device.recordings.at(one.pCommandBufferInfos[i].commandBuffer);
        std::ranges::copy(recording.copies, std::back_inserter(work.steps));
      }
    }
    queue.engine->submit(std::move(work));
  }
  if (fence == VK_NULL_HANDLE) return VK_SUCCESS;
  // It isn't known when somebody waits for that.
  queue.engine->wait_idle();
  const std::scoped_lock lock(device.queue_mutex);
  return device.next.vkQueueSubmit2(queue.real, 0, nullptr, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL submit2(VkQueue handle, uint32_t count, const VkSubmitInfo2* submissions,
                                       VkFence fence) {
  const Queue& queue = queue_of(handle);
  if (queue.engine) return submit_to_engine(queue, std::span(submissions, count), fence);
  for (const VkSubmitInfo2& one : std::span(submissions, count)) {
    for (uint32_t i = 0; i < one.waitSemaphoreInfoCount; ++i)
      queue.device->wanted.add(one.pWaitSemaphoreInfos[i].semaphore, one.pWaitSemaphoreInfos[i].value);
  }
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
  if (queue.engine && count != 0)
    queue.device->complain("pretend-copy-queue", "queues that only copy play vkQueueSubmit2 alone");
  const std::scoped_lock lock(queue.device->queue_mutex);
  for (const VkSubmitInfo& one : std::span(submissions, count)) {
    for (uint32_t i = 0; i < one.commandBufferCount; ++i) run(*queue.device, one.pCommandBuffers[i]);
  }
  return queue.device->next.vkQueueSubmit(queue.real, count, submissions, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL wait(VkQueue handle) {
  const Queue& queue = queue_of(handle);
  if (queue.engine) queue.engine->wait_idle();
  const std::scoped_lock lock(queue.device->queue_mutex);
  return queue.device->next.vkQueueWaitIdle(queue.real);
}

VKAPI_ATTR VkResult VKAPI_CALL wait_for_all(VkDevice handle) {
  Device& device = device_of(handle);
  std::vector<CopyEngine*> engines;
  {
    const std::scoped_lock lock(device.mutex);
    for (const auto& [place, queue] : device.queues) {
      if (queue->engine) engines.push_back(queue->engine.get());
    }
  }
  for (CopyEngine* engine : engines) engine->wait_idle();
  return device.next.vkDeviceWaitIdle(handle);
}

VKAPI_ATTR VkResult VKAPI_CALL wait_semaphores(VkDevice handle, const VkSemaphoreWaitInfo* info,
                                               uint64_t timeout) {
  Device& device = device_of(handle);
  for (uint32_t i = 0; i < info->semaphoreCount; ++i)
    device.wanted.add(info->pSemaphores[i], info->pValues[i]);
  return device.next.vkWaitSemaphores(handle, info, timeout);
}

VKAPI_ATTR void VKAPI_CALL destroy_semaphore(VkDevice handle, VkSemaphore semaphore,
                                             const VkAllocationCallbacks* callbacks) {
  Device& device = device_of(handle);
  device.wanted.forget(semaphore);
  device.next.vkDestroySemaphore(handle, semaphore, callbacks);
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
          PRETEND_HOOK(vkDeviceWaitIdle, wait_for_all),
          PRETEND_HOOK(vkWaitSemaphores, wait_semaphores),
          PRETEND_HOOK(vkWaitSemaphoresKHR, wait_semaphores),
          PRETEND_HOOK(vkDestroySemaphore, destroy_semaphore),
          PRETEND_HOOK(vkQueueBindSparse, bind_sparse),
          PRETEND_HOOK(vkQueuePresentKHR, present),
          PRETEND_HOOK(vkQueueBeginDebugUtilsLabelEXT, begin_label),
          PRETEND_HOOK(vkQueueEndDebugUtilsLabelEXT, end_label),
          PRETEND_HOOK(vkQueueInsertDebugUtilsLabelEXT, insert_label),
          PRETEND_HOOK(vkSetDebugUtilsObjectNameEXT, set_name),
          PRETEND_HOOK(vkSetDebugUtilsObjectTagEXT, set_tag)};
}

}  // namespace vitrine::pretend
