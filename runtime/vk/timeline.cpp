#include "runtime/vk/timeline.h"

#include <volk.h>

#include <algorithm>

#include "runtime/vk/device.h"
#include "runtime/vk/result.h"

namespace vitrine {
namespace {

VkSemaphoreSubmitInfo info_of(VkSemaphore semaphore, uint64_t value) {
  VkSemaphoreSubmitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO};
  info.semaphore = semaphore;
  info.value = value;
  info.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  return info;
}

}  // namespace

Timeline::Timeline(Device& device) : device_(device) {
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type};
  VkSemaphore made = VK_NULL_HANDLE;
  check(device.vk().vkCreateSemaphore(device.handle(), &info, nullptr, &made), "vkCreateSemaphore");
  semaphore_ = {device.handle(), made, device.vk().vkDestroySemaphore};
}

VkSemaphoreSubmitInfo Timeline::next_signal() const { return info_of(semaphore_.get(), promised_ + 1); }
VkSemaphoreSubmitInfo Timeline::wait_for(uint64_t value) const { return info_of(semaphore_.get(), value); }

void Timeline::wait(uint64_t value) {
  if (value <= reached_) return;
  check(wait_without_check(value), "vkWaitSemaphores");
  seen(value);
}

VkResult Timeline::wait_without_check(uint64_t value) const {
  const VkSemaphore semaphore = semaphore_.get();
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore;
  info.pValues = &value;
  return device_.vk().vkWaitSemaphores(device_.handle(), &info, UINT64_MAX);
}

void Timeline::seen(uint64_t value) { reached_ = std::max(reached_, value); }

}  // namespace vitrine
