// A timeline semaphore, with what was promised of it and what of that was seen.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>

#include "runtime/vk/handle.h"

namespace vitrine {

class Device;

class Timeline {
 public:
  explicit Timeline(Device& device);

  // What the next submission signals, once all is done that its queue was given until then; submitted() says
  // that it was, and gives the value.
  VkSemaphoreSubmitInfo next_signal() const;
  uint64_t submitted() { return ++promised_; }
  // For a submission that may only begin once `value` is there; it sees what was written until then.
  VkSemaphoreSubmitInfo wait_for(uint64_t value) const;

  // The host waits. Nothing is asked of the device where the value was seen before.
  void wait(uint64_t value);
  // The same for who must not throw; of a lost device the answer comes at once.
  VkResult wait_without_check(uint64_t value) const;
  // Known without having waited: something else that was waited for had waited for it.
  void seen(uint64_t value);
  uint64_t promised() const { return promised_; }

 private:
  Device& device_;
  DeviceHandle<VkSemaphore> semaphore_;
  uint64_t promised_ = 0;  // what the last submission signals
  uint64_t reached_ = 0;   // was seen to be there
};

}  // namespace vitrine
