#include "apps/cli/bench/host_time.h"

#include <volk.h>

#include <algorithm>
#include <limits>

#include "runtime/util/error.h"
#include "runtime/util/system.h"

namespace vitrine::cli {
namespace {

// Vulkan's functions take no user data, so what the timing functions call and count stands here.
VolkDeviceTable real;
HostTime counted;

VKAPI_ATTR VkResult VKAPI_CALL timed_submit(VkQueue queue, uint32_t count, const VkSubmitInfo2* infos,
                                            VkFence fence) {
  const double start = thread_seconds();
  const VkResult result = real.vkQueueSubmit2(queue, count, infos, fence);
  counted.driver += thread_seconds() - start;
  ++counted.submissions;
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL timed_wait(VkDevice device, const VkSemaphoreWaitInfo* info,
                                          uint64_t timeout) {
  const double start = thread_seconds();
  const VkResult result = real.vkWaitSemaphores(device, info, timeout);
  counted.driver += thread_seconds() - start;
  ++counted.waits;
  return result;
}

class TimedCalls {
 public:
  explicit TimedCalls(VolkDeviceTable& table) : table_(table) {
    real = table;
    counted = {};
    table.vkQueueSubmit2 = &timed_submit;
    table.vkWaitSemaphores = &timed_wait;
  }
  ~TimedCalls() {
    table_.vkQueueSubmit2 = real.vkQueueSubmit2;
    table_.vkWaitSemaphores = real.vkWaitSemaphores;
  }
  TimedCalls(const TimedCalls&) = delete;
  TimedCalls& operator=(const TimedCalls&) = delete;

 private:
  VolkDeviceTable& table_;
};

double seconds_of_reading_the_clock() {
  double least = std::numeric_limits<double>::max();
  for (int i = 0; i < 16; ++i) {
    const double start = thread_seconds();
    least = std::min(least, thread_seconds() - start);
  }
  return least;
}

}  // namespace

double thread_seconds() {
  if (const auto seconds = system::thread_seconds()) return *seconds;
  throw Error(ErrorCode::failed, "this system has no clock of a thread's CPU time, expected one to read");
}

HostTime host_time_of_run(Device& device, Executable& executable) {
  const double clock = seconds_of_reading_the_clock();
  const TimedCalls guard(device.vk());
  const double start = thread_seconds();
  executable.run();
  const double all = thread_seconds() - start;
  HostTime time = counted;
  time.own = all - time.driver;
  // Between two readings lies one reading; each call's two belong half to it and half to what is around it.
  time.clock = clock * static_cast<double>(1 + time.submissions + time.waits);
  return time;
}

}  // namespace vitrine::cli
