// What a run costs this process outside the driver: the runtime's own instructions around submitting and
// waiting.
#pragma once

#include <cstdint>

#include "runtime/graph/executable.h"

namespace vitrine::cli {

// CPU seconds of the calling thread. Sleeping while the device works counts nothing.
struct HostTime {
  double own = 0;            // in Executable::run() outside vkQueueSubmit2 and vkWaitSemaphores
  double driver = 0;         // inside those two
  double clock = 0;          // about how much of `own` goes into reading the clock
  uint64_t submissions = 0;  // calls of vkQueueSubmit2
  uint64_t waits = 0;        // calls of vkWaitSemaphores
};

// The calling thread's CPU time so far, in seconds. Throws Error(failed) where there is no such clock.
double thread_seconds();

// Runs set 0 once. While it runs, the device's function table has timing functions in it: no other thread
// may use the device.
HostTime host_time_of_run(Device& device, Executable& executable);

}  // namespace vitrine::cli
