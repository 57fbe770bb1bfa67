#include "apps/cli/bench/bench_host.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <vector>

#include "apps/cli/bench/bench_output.h"
#include "apps/cli/bench/host_time.h"

namespace vitrine::cli {

HostCosts host_costs(Device& device, Executable& executable, uint64_t runs, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr size_t least_runs = 5;
  const size_t inputs = executable.plan().inputs.size(), outputs = executable.plan().outputs.size();
  std::vector<std::vector<std::byte>> images(inputs), results(outputs);
  for (size_t i = 0; i < inputs; ++i)
    images[i].assign(executable.input(i).begin(), executable.input(i).end());
  for (size_t i = 0; i < outputs; ++i) results[i].resize(executable.output(i).size());

  HostCosts costs;
  std::vector<double> own, clock, driver, copy_in, copy_out;
  const auto start = Clock::now();
  const auto enough = [&] {
    if (runs) return own.size() >= runs;
    return own.size() >= least_runs && std::chrono::duration<double>(Clock::now() - start).count() >= seconds;
  };
  while (!enough()) {
    const double before_in = thread_seconds();
    for (size_t i = 0; i < inputs; ++i) {
      std::memcpy(executable.input(i).data(), images[i].data(), images[i].size());
    }
    copy_in.push_back(thread_seconds() - before_in);
    const HostTime time = host_time_of_run(device, executable);
    const double before_out = thread_seconds();
    for (size_t i = 0; i < outputs; ++i) {
      std::memcpy(results[i].data(), executable.output(i).data(), results[i].size());
    }
    copy_out.push_back(thread_seconds() - before_out);
    own.push_back(time.own);
    clock.push_back(time.clock);
    driver.push_back(time.driver);
    costs.submissions = std::max(costs.submissions, time.submissions);
    costs.waits = std::max(costs.waits, time.waits);
  }
  costs.runs = own.size();
  costs.median = median_of(own);
  costs.least = *std::ranges::min_element(own);
  costs.clock = median_of(clock);
  costs.driver = median_of(driver);
  costs.copy_in = median_of(copy_in);
  costs.copy_out = median_of(copy_out);
  return costs;
}

void add_host_costs(nlohmann::ordered_json& line, const HostCosts& costs) {
  line["host"] = {{"runs", costs.runs},
                  {"median_us", costs.median * 1e6},
                  {"min_us", costs.least * 1e6},
                  {"clock_us", costs.clock * 1e6},
                  {"driver_us", costs.driver * 1e6},
                  {"copy_in_us", costs.copy_in * 1e6},
                  {"copy_out_us", costs.copy_out * 1e6},
                  {"submissions", costs.submissions},
                  {"waits", costs.waits}};
}

void print_host_costs(const HostCosts& costs) {
  std::printf("  CPU time of a run outside the driver: %.1f us (median of %" PRIu64
              ", least %.1f; reading the clock is about %.1f of them)\n",
              costs.median * 1e6, costs.runs, costs.least * 1e6, costs.clock * 1e6);
  std::printf("  inside the driver: %.1f us, in %" PRIu64 " submissions and %" PRIu64
              " waits; copying in %.1f us, copying out %.1f us\n",
              costs.driver * 1e6, costs.submissions, costs.waits, costs.copy_in * 1e6, costs.copy_out * 1e6);
}

}  // namespace vitrine::cli
