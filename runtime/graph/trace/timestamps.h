// Moments by the device's own clock.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <vector>

#include "runtime/vk/device.h"
#include "runtime/vk/memory.h"

namespace vitrine {

struct Plan;

// How many an Executable's recording takes: one at the beginning of each slice, as what passes between two
// slices is no step's time, and one behind each dispatch or part of one.
uint32_t timestamps_of(const Plan& plan);

class Timestamps {
 public:
  Timestamps(Device& device, uint32_t count);
  ~Timestamps();
  Timestamps(const Timestamps&) = delete;
  Timestamps& operator=(const Timestamps&) = delete;

  void reset(VkCommandBuffer commands);  // on a queue that computes
  void reset();                          // where the device resets_queries()
  void write(VkCommandBuffer commands, uint32_t index);
  // On a queue that computes, behind the last of them: they are then read from memory, for which nobody
  // waits. The software driver waits for all of its queue where it is asked for them.
  void copy_to_host(VkCommandBuffer commands);
  // All of them, once what writes them is done.
  std::vector<uint64_t> ticks() const;

 private:
  Device& device_;
  uint32_t count_;
  VkQueryPool pool_ = VK_NULL_HANDLE;
  Buffer copy_;
};

// From one moment to a later one, on a clock of so many bits that may have begun anew in between.
double seconds_between(uint64_t from, uint64_t to, uint32_t bits, double period_ns);

}  // namespace vitrine
