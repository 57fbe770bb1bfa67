// vitrine bench --host-time: what a run costs the CPU outside the driver.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "runtime/graph/executable.h"
#include "runtime/vk/device.h"

namespace vitrine::cli {

// CPU time of the calling thread, in seconds.
struct HostCosts {
  uint64_t runs = 0;
  double median = 0, least = 0;         // of a run outside vkQueueSubmit2 and vkWaitSemaphores
  double clock = 0;                     // of that, about this much goes into reading the clock
  double driver = 0;                    // a run's median inside the two calls
  double copy_in = 0, copy_out = 0;     // medians of copying the inputs in and the outputs out
  uint64_t submissions = 0, waits = 0;  // of a run
};

// As many runs as were asked for; with 0, as many as `seconds` hold, at least five.
HostCosts host_costs(Device& device, Executable& executable, uint64_t runs, double seconds);

void add_host_costs(nlohmann::ordered_json& line, const HostCosts& costs);
void print_host_costs(const HostCosts& costs);

}  // namespace vitrine::cli
